import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { address, ask, type Schemas } from "../api/client";
import { refresh, runQuery, runsQuery } from "../api/queries";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { useKey } from "../parts/once";
import { Command, Dialog, Trouble } from "../parts/parts";
import { quoted } from "../parts/words";
import { useFields } from "./Fields";

type Detail = Schemas["DagDetail"];

const curl = (dagId: string, body: unknown) =>
  [
    'curl -H "Authorization: Bearer $EVENFLOW_TOKEN" -H "Content-Type: application/json"',
    `-d ${quoted(JSON.stringify(body))}`,
    `${location.origin}${address("/api/v1/dags/{dag_id}/runs", { dag_id: dagId })}`,
  ].join(" ");

/** The values of the newest run, a click away. */
function LastValues({ dagId, take }: { dagId: string; take: (values: Record<string, unknown>) => void }) {
  const runs = useQuery({ ...runsQuery({ dag_id: dagId, limit: 1 }), refetchInterval: false });
  const runId = runs.data?.items[0]?.run_id;
  const run = useQuery({ ...runQuery(dagId, runId ?? ""), enabled: runId !== undefined, refetchInterval: false });
  if (!run.data || !Object.keys(run.data.params).length) return null;
  const { params } = run.data;
  return (
    <p className="quiet">
      <button type="button" onClick={() => take(params)}>
        As in the last run
      </button>{" "}
      {runId}
    </p>
  );
}

/** A run with these values: a form of the params' schemas, and the same as a command. */
export function Trigger({ dag, close }: { dag: Detail; close: () => void }) {
  const { given, isGood, typed: values, fields, take } = useFields(dag.params);
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
        {dag.params.length > 0 && <LastValues dagId={dag.dag_id} take={take} />}
        {fields}
        <Field id="note" label="Note, for whoever looks at the run later" value={note} change={setNote} maxLength={1000} />
        <Command text={typed} />
        <details>
          <summary>The same by curl</summary>
          <Command text={curl(dag.dag_id, body)} />
        </details>
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
