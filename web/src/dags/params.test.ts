import { expect, test } from "vitest";
import { fieldOf, read, shown } from "./params";

const param = (schema: Record<string, unknown>, initial: unknown = null, required = false) =>
  fieldOf({ name: "p", default: initial, required, schema, description: "" });

test("a field is of the kind that its schema names", () => {
  const kinds = [{ type: "string" }, { type: "integer" }, { type: ["number", "null"] }, { type: "boolean" }, { enum: ["a"] }, { type: "string", format: "date" }, { type: "array" }, {}];
  expect(kinds.map((schema) => param(schema).kind)).toEqual(["text", "number", "number", "boolean", "choice", "date", "json", "json"]);
});

test("the default stands in the field", () => {
  expect(shown(param({ type: "integer" }, 3))).toBe("3");
  expect(shown(param({ type: "string" }, "x"))).toBe("x");
  expect(shown(param({ type: "array" }, [1, 2]))).toBe("[1,2]");
  expect(shown(param({ type: "boolean" }, true))).toBe("true");
});

test("what is typed becomes a value of the schema's type, or says what is wrong", () => {
  expect(read(param({ type: "integer" }), "12")).toEqual({ value: 12, flaw: null });
  expect(read(param({ type: "integer" }), "1.5").flaw).toBe("It is a whole number.");
  expect(read(param({ type: "number" }), "twelve").flaw).toBe("It is a number.");
  expect(read(param({ type: "boolean" }), "false")).toEqual({ value: false, flaw: null });
  expect(read(param({ enum: [1, 2] }), "2")).toEqual({ value: 2, flaw: null });
  expect(read(param({ enum: ["1"] }), "1")).toEqual({ value: "1", flaw: null });
  expect(read(param({ type: "object" }), "{a}").flaw).toContain("JSON");
});

test("what is left out has its default, unless it is needed", () => {
  expect(read(param({ type: "integer" }, 3), "")).toEqual({ value: undefined, flaw: null });
  expect(read(param({ type: "string" }, null, true), "").flaw).toBe("It needs a value.");
  expect(read(param({ type: "string" }, "x"), "")).toEqual({ value: "", flaw: null });
});
