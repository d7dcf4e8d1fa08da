import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { pluginWarnings } from "./services";

const service = (kind: string, detail: Record<string, unknown>, healthy = true) => ({ kind, healthy, detail }) as Schemas["ServiceStatus"];

test("warnings about plugins are told once, by processors that live", () => {
  const told = [
    service("processor", { bundles: [{ name: "a", warnings: ["shop", "atelier"] }, { name: "b", warnings: ["shop"] }, { name: "c" }] }),
    service("processor", { bundles: [{ name: "a", warnings: ["gone"] }] }, false),
    service("worker", {}),
  ];
  expect(pluginWarnings(told)).toEqual(["atelier", "shop"]);
});
