import { expect, test } from "vitest";
import { namesIn, scopeWords } from "./scopes";

test("names have commas between them, and stand once", () => {
  expect(namesIn(" etl, reports ,, etl")).toEqual(["etl", "reports"]);
  expect(namesIn(" ")).toEqual([]);
});

test("a scope is told by what it names; one that names nothing is everywhere", () => {
  expect(scopeWords({ tags: ["etl", "hr"], queues: ["q"], pools: [] })).toBe("tags etl, hr; queues q");
  expect(scopeWords({ tags: [] })).toBe("");
  expect(scopeWords(null)).toBe("");
});
