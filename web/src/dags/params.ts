// Params of a DAG as fields of a form. What a schema says beyond a field's kind the API judges, in its own words.
import type { Schemas } from "../api/client";

export interface Field {
  name: string;
  title: string;
  description: string;
  required: boolean;
  kind: "text" | "number" | "boolean" | "choice" | "date" | "json";
  isInteger: boolean;
  isText: boolean; // of a choice: its values are texts
  choices: string[];
  initial: unknown;
}

export function fieldOf(param: Schemas["DagParam"]): Field {
  const schema = param.schema as { type?: string | string[]; enum?: unknown[]; format?: string; title?: string };
  const types = ([] as string[]).concat(schema.type ?? []);
  const type = types.find((one) => one !== "null");
  const kind = schema.enum
    ? "choice"
    : type === "boolean"
      ? "boolean"
      : type === "integer" || type === "number"
        ? "number"
        : type === "string"
          ? schema.format === "date"
            ? "date"
            : "text"
          : "json";
  return {
    name: param.name,
    title: schema.title ?? param.name,
    description: param.description,
    required: param.required,
    kind,
    isInteger: type === "integer",
    isText: (schema.enum ?? []).every((one) => typeof one === "string"),
    choices: kind === "boolean" ? ["true", "false"] : (schema.enum ?? []).map((one) => (typeof one === "string" ? one : JSON.stringify(one))),
    initial: param.default,
  };
}

/** The text that stands in the field at first. */
export function shown(field: Field): string {
  const { initial } = field;
  if (initial === null || initial === undefined) return field.kind === "json" && !field.required ? "null" : field.kind === "choice" || field.kind === "boolean" ? (field.choices[0] ?? "") : "";
  return typeof initial === "string" && field.kind !== "json" ? initial : JSON.stringify(initial);
}

/** What the text means: a value, none (the default counts), or why it cannot be one. */
export function read(field: Field, text: string): { value: unknown; flaw: string | null } {
  if (text === "" && field.kind !== "text") return field.required ? { value: undefined, flaw: "It needs a value." } : { value: undefined, flaw: null };
  if (text === "" && field.required) return { value: undefined, flaw: "It needs a value." };
  if (text === "" && (field.initial === null || field.initial === undefined)) return { value: undefined, flaw: null };
  switch (field.kind) {
    case "text":
    case "date":
      return { value: text, flaw: null };
    case "number": {
      const value = Number(text);
      if (text.trim() === "" || !Number.isFinite(value)) return { value: undefined, flaw: "It is a number." };
      return field.isInteger && !Number.isInteger(value) ? { value: undefined, flaw: "It is a whole number." } : { value, flaw: null };
    }
    case "boolean":
      return { value: text === "true", flaw: null };
    case "choice":
      return { value: field.isText ? text : JSON.parse(text), flaw: null };
    case "json":
      try {
        return { value: JSON.parse(text), flaw: null };
      } catch {
        return { value: undefined, flaw: "It is JSON: a text stands in double quotes." };
      }
  }
}
