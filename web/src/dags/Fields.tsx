import { useState, type ReactNode } from "react";
import type { Schemas } from "../api/client";
import { fieldOf, read, shown, type Field } from "./params";

export interface Filled {
  given: Record<string, unknown>; // what has a value; for the others their defaults count
  isGood: boolean;
  typed: string[]; // NAME=VALUE, as the command line takes them
  fields: ReactNode;
  take: (values: Record<string, unknown>) => void; // of another run
}

/** A form of params' schemas, and what stands in it. */
export function useFields(params: Schemas["DagParam"][]): Filled {
  const fields = params.map(fieldOf);
  const [changed, setChanged] = useState<Record<string, string>>({});
  const values = fields.map((field) => {
    const text = changed[field.name] ?? shown(field);
    return { field, text, ...read(field, text) };
  });
  const given = Object.fromEntries(values.filter(({ flaw, value }) => flaw === null && value !== undefined).map(({ field, value }) => [field.name, value]));
  return {
    given,
    isGood: values.every((value) => value.flaw === null),
    typed: Object.entries(given).map(([name, value]) => `${name}=${asTyped(value)}`),
    take: (last) => setChanged(Object.fromEntries(fields.filter(({ name }) => name in last).map(({ name }) => [name, asTyped(last[name])]))),
    fields: values.map(({ field, text, flaw }) => (
      <ParamField key={field.name} field={field} text={text} flaw={flaw} change={(to) => setChanged({ ...changed, [field.name]: to })} />
    )),
  };
}

const asTyped = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

function ParamField({ field, text, flaw, change }: { field: Field; text: string; flaw: string | null; change: (text: string) => void }) {
  const id = `param-${field.name}`;
  const common = { id, value: text, "aria-invalid": flaw !== null, "aria-describedby": `${id}-about` };
  return (
    <div className="field">
      <label htmlFor={id}>
        {field.title} {field.required && <span className="quiet">(needed)</span>}
      </label>
      {field.kind === "choice" || field.kind === "boolean" ? (
        <select {...common} onChange={(event) => change(event.target.value)}>
          {!field.required && field.kind === "choice" && !field.choices.includes(text) && <option value={text}>{text}</option>}
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : field.kind === "json" ? (
        <textarea {...common} rows={3} spellCheck={false} onChange={(event) => change(event.target.value)} />
      ) : (
        <input {...common} type={field.kind === "date" ? "date" : "text"} inputMode={field.kind === "number" ? "decimal" : undefined} onChange={(event) => change(event.target.value)} />
      )}
      <p id={`${id}-about`} className={flaw ? "flaw" : "quiet"}>
        {flaw ?? field.description}
      </p>
    </div>
  );
}
