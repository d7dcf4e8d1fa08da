import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { refresh } from "../api/queries";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { useKey } from "../parts/once";
import { Command, Dialog, Trouble } from "../parts/parts";
import { quoted } from "../parts/words";
import { useFields } from "./Fields";

type Detail = Schemas["DagDetail"];

/** A run with these values: a form of the params' schemas, and the same as a command. */
export function Trigger({ dag, close }: { dag: Detail; close: () => void }) {
  const { given, isGood, typed: values, fields } = useFields(dag.params);
  const [note, setNote] = useState("");
  const client = useQueryClient();
  const navigate = useNavigate();
  const keyOf = useKey();
  const body = { params: given, ...(note.trim() ? { note: note.trim() } : {}) };
  const trigger = useMutation({
    mutationFn: () => ask("post", "/api/v1/dags/{dag_id}/runs", { names: { dag_id: dag.dag_id }, body, key: keyOf(body) }),
    onSuccess: async (run) => {
      await refresh(client);
      await navigate({ to: "/dags/$dagId/runs/$runId", params: { dagId: dag.dag_id, runId: run.run_id } });
    },
  });
  const typed = ["evenflow runs trigger", quoted(dag.dag_id), ...values.map((value) => `--param ${quoted(value)}`)].join(" ");
  return (
    <Dialog title={`Trigger ${dag.display_name}`} open close={close} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          trigger.mutate();
        }}
      >
        {dag.is_paused && <p className="note">The DAG is paused: the run waits until it is on again.</p>}
        {dag.params.length === 0 && <p className="quiet">It has no params.</p>}
        {fields}
        <Field id="note" label="Note, for whoever looks at the run later" value={note} change={setNote} maxLength={1000} />
        <Command text={typed} />
        {trigger.error && <Trouble error={trigger.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <Allowed to="author">
            <button type="submit" className="primary" disabled={!isGood || trigger.isPending}>
              Trigger
            </button>
          </Allowed>
        </footer>
      </form>
    </Dialog>
  );
}
