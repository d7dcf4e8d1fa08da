// Clearing, marking and cancelling: what would be touched is asked first, and shown before the yes.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { refresh } from "../api/queries";
import { Command, Dialog, Found, Trouble } from "../parts/parts";
import { StateMark, stateWord } from "../parts/states";
import { count, counted, instanceName, quoted } from "../parts/words";

export type Operation =
  | { kind: "clear"; only: "failed" | null }
  | { kind: "mark"; state: "success" | "failed" | "skipped" }
  | { kind: "cancel" };

export interface Scope {
  dagId: string;
  runId: string;
  taskId?: string;
  map?: number;
}

const VERBS = { clear: "Clear", mark: "Mark", cancel: "Cancel" } as const;

export function Operate({ operation, scope, close }: { operation: Operation; scope: Scope; close: () => void }) {
  const of = scope.taskId ? instanceName(scope.taskId, scope.map ?? -1) : `the run ${scope.runId}`;
  const title =
    operation.kind === "mark"
      ? `Mark ${of} ${operation.state}`
      : operation.kind === "cancel"
        ? `Cancel ${of}`
        : operation.only === "failed"
          ? "Run what failed again"
          : `Run ${of} again`;
  return (
    <Dialog title={title} open close={close}>
      {operation.kind === "cancel" ? <Cancel scope={scope} close={close} /> : <Touch operation={operation} scope={scope} close={close} />}
    </Dialog>
  );
}

function useDone(close: () => void) {
  const client = useQueryClient();
  return async () => {
    close();
    await refresh(client);
  };
}

function Cancel({ scope, close }: { scope: Scope; close: () => void }) {
  const names = { dag_id: scope.dagId, run_id: scope.runId };
  const preview = useQuery({
    queryKey: ["preview", "cancel", scope],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/cancel", { names, signal }),
    gcTime: 0,
    retry: false,
  });
  const cancel = useMutation({ mutationFn: () => ask("post", "/api/v1/dags/{dag_id}/runs/{run_id}/cancel", { names }), onSuccess: useDone(close) });
  return (
    <>
      <p>Nothing of the run starts any more, what runs of it is killed, and then it fails.</p>
      <Found of={preview}>{(would) => <p aria-live="polite">{would.told}</p>}</Found>
      <Command text={`evenflow runs cancel ${quoted(scope.dagId)} ${quoted(scope.runId)}`} />
      {cancel.error && <Trouble error={cancel.error} />}
      <footer>
        <button type="button" onClick={close}>
          Leave it
        </button>
        <button type="button" className="danger" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel the run
        </button>
      </footer>
    </>
  );
}

function Touch({ operation, scope, close }: { operation: Exclude<Operation, { kind: "cancel" }>; scope: Scope; close: () => void }) {
  const [downstream, setDownstream] = useState(operation.kind === "clear" && scope.taskId !== undefined);
  const what = {
    downstream,
    upstream: false,
    past: false,
    future: false,
    ...(scope.taskId ? { tasks: [scope.taskId] } : {}),
    ...(scope.taskId && scope.map !== undefined && scope.map >= 0 ? { map_indexes: [scope.map] } : {}),
  };
  const operate = (dryRun: boolean): Promise<Schemas["Operated"]> => {
    const names = { dag_id: scope.dagId, run_id: scope.runId };
    return operation.kind === "clear"
      ? ask("post", "/api/v1/dags/{dag_id}/runs/{run_id}/clear", { names, body: { ...what, only: operation.only, dry_run: dryRun } })
      : ask("post", "/api/v1/dags/{dag_id}/runs/{run_id}/mark", { names, body: { ...what, state: operation.state, dry_run: dryRun } });
  };
  const preview = useQuery({ queryKey: ["preview", operation, scope, downstream], queryFn: () => operate(true), gcTime: 0, retry: false });
  const go = useMutation({ mutationFn: () => operate(false), onSuccess: useDone(close) });
  const total = preview.data?.total ?? 0;
  return (
    <>
      {scope.taskId && (
        <label className="check">
          <input type="checkbox" checked={downstream} onChange={(event) => setDownstream(event.target.checked)} /> Also all that depends on it
        </label>
      )}
      <Found of={preview}>{(touched) => <Touched touched={touched} clears={operation.kind === "clear"} />}</Found>
      {go.error && <Trouble error={go.error} />}
      <footer>
        <button type="button" onClick={close}>
          Leave it
        </button>
        <button type="button" className="primary" disabled={!preview.data || total === 0 || go.isPending} onClick={() => go.mutate()}>
          {VERBS[operation.kind]} {total > 0 && counted(total, "task")}
        </button>
      </footer>
    </>
  );
}

function Touched({ touched, clears }: { touched: Schemas["Operated"]; clears: boolean }) {
  if (touched.already) return <p>All of that is so already.</p>;
  if (!touched.total) return <p>Nothing would be touched.</p>;
  return (
    <>
      <p aria-live="polite">
        {clears ? "Clears" : "Marks"}: {touched.effect.told}
      </p>
      <ul className="touched">
        {touched.instances.slice(0, 50).map((one) => (
          <li key={`${one.run_id} ${one.task_id} ${one.map_index}`}>
            <StateMark state={one.state} size={14} /> {instanceName(one.task_id, one.map_index)} <span className="quiet">{stateWord(one.state)}</span>
          </li>
        ))}
        {touched.total > 50 && <li className="quiet">and {count(touched.total - 50)} more</li>}
      </ul>
    </>
  );
}
