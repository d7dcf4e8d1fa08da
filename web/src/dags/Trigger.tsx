import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { refresh } from "../api/queries";
import { Allowed } from "../parts/Allowed";
import { Command, Dialog, Trouble } from "../parts/parts";
import { quoted } from "../parts/words";
import { fieldOf, read, shown, type Field } from "./params";

type Detail = Schemas["DagDetail"];

/** A run with these values: a form of the params' schemas, and the same as a command. */
export function Trigger({ dag, close }: { dag: Detail; close: () => void }) {
  const fields = dag.params.map(fieldOf);
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(fields.map((field) => [field.name, shown(field)])));
  const [note, setNote] = useState("");
  const client = useQueryClient();
  const navigate = useNavigate();
  const values = fields.map((field) => ({ field, ...read(field, texts[field.name] ?? "") }));
  const wrong = values.some((value) => value.flaw !== null);
  const given = Object.fromEntries(values.filter(({ flaw, value }) => flaw === null && value !== undefined).map(({ field, value }) => [field.name, value]));
  const trigger = useMutation({
    mutationFn: () =>
      ask("post", "/api/v1/dags/{dag_id}/runs", { names: { dag_id: dag.dag_id }, body: { params: given, ...(note.trim() ? { note: note.trim() } : {}) } }),
    onSuccess: async (run) => {
      await refresh(client);
      await navigate({ to: "/dags/$dagId/runs/$runId", params: { dagId: dag.dag_id, runId: run.run_id } });
    },
  });
  const typed = ["evenflow runs trigger", quoted(dag.dag_id), ...Object.entries(given).map(([name, value]) => `--param ${quoted(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)}`)].join(" ");
  return (
    <Dialog title={`Trigger ${dag.display_name}`} open close={close} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          trigger.mutate();
        }}
      >
        {dag.is_paused && <p className="note">The DAG is paused: the run waits until it is on again.</p>}
        {fields.length === 0 && <p className="quiet">It has no params.</p>}
        {values.map(({ field, flaw }) => (
          <ParamField key={field.name} field={field} text={texts[field.name] ?? ""} flaw={flaw} change={(text) => setTexts({ ...texts, [field.name]: text })} />
        ))}
        <label htmlFor="note">Note, for whoever looks at the run later</label>
        <input id="note" value={note} maxLength={1000} onChange={(event) => setNote(event.target.value)} />
        <Command text={typed} />
        {trigger.error && <Trouble error={trigger.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <Allowed to="author">
            <button type="submit" className="primary" disabled={wrong || trigger.isPending}>
              Trigger
            </button>
          </Allowed>
        </footer>
      </form>
    </Dialog>
  );
}

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
