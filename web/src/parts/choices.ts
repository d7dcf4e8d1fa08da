// What a reader has chosen for this browser: no secret, and nothing that another browser would need.
import { useSyncExternalStore } from "react";

type Choices = { theme: "light" | "dark" | "system"; zone: "local" | "utc" };
const FIRST: Choices = { theme: "system", zone: "local" };
const KEY = "evenflow.choices";
const listeners = new Set<() => void>();

function kept(): Choices {
  try {
    return { ...FIRST, ...(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Choices>) };
  } catch {
    return FIRST; // a browser that keeps nothing
  }
}

let now = kept();

export function choose(some: Partial<Choices>) {
  now = { ...now, ...some };
  try {
    localStorage.setItem(KEY, JSON.stringify(now));
  } catch {
    // it then holds until the page is closed
  }
  show();
  for (const listener of listeners) listener();
}

export function show() {
  const dark = now.theme === "dark" || (now.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);

export const useChoices = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
