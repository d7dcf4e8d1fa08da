import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// What is built lies beside the API server that serves it. `npm run dev` asks the server of an `evenflow up`.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/evenflow/api/built",
    emptyOutDir: true,
    manifest: true, // which page loads what, for bench/ui_size.py
    target: "es2022",
    assetsInlineLimit: 0, // a data: URL would need a rule of its own in the Content-Security-Policy
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": process.env.EVENFLOW_API_URL ?? "http://127.0.0.1:8974" } },
});
