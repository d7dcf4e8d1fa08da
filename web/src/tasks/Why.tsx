import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { whyQuery, type InstanceName } from "../api/queries";
import { usePause } from "../dags/Dags";
import { Allowed } from "../parts/Allowed";
import { Command, Found } from "../parts/parts";
import type { Operation } from "../runs/Operate";

type Reason = NonNullable<Schemas["Why"]["reasons"]>[number];
type Act = (operation: Operation) => void;

/** Why it does not run, or how it ended: the sentences come from the scheduler's own state, this adds links and buttons alone. */
export function WhyBox({ of, act }: { of: InstanceName; act: Act }) {
  const why = useQuery(whyQuery(of));
  return (
    <section className="why" aria-label="Why">
      <Found of={why}>
        {(found) =>
          (found.reasons ?? []).map((reason, at) => <ReasonBox key={at} reason={reason} first={at === 0} of={of} act={act} state={found.state} />)
        }
      </Found>
    </section>
  );
}

function ReasonBox({ reason, first, of, act, state }: { reason: Reason; first: boolean; of: InstanceName; act: Act; state: string }) {
  const told = reason.told;
  if (!told) return null;
  return (
    <div className={first ? "reason-box first" : "reason-box"}>
      <p className="sentence">{told.sentence}</p>
      <Links reason={reason} of={of} />
      {(told.facts ?? []).map((fact) => (
        <dl key={fact.name} className="fact">
          <dt>{fact.name}</dt>
          {fact.lines.map((line) => (
            <dd key={line}>{line}</dd>
          ))}
        </dl>
      ))}
      {told.cure && (
        <p className="cure">
          <span className="quiet">{upper(told.aim ?? "to change it")}:</span> {told.cure.startsWith("evenflow ") ? <Command text={told.cure} /> : told.cure}
          <Allowed to="author">
            <Cure reason={reason} act={act} />
          </Allowed>
        </p>
      )}
      {state === "failed" && first && (
        <p className="cure">
          <Allowed to="author">
            <button type="button" className="primary" onClick={() => act({ kind: "clear", only: null })}>
              Run it again
            </button>
          </Allowed>
        </p>
      )}
    </div>
  );
}

/** What the cure types, as a button, where this page can do it. */
function Cure({ reason, act }: { reason: Reason; act: Act }) {
  if (reason.kind === "paused") return <Unpause dagId={reason.dag_id} />;
  if (reason.kind === "upstream_failed")
    return (
      <button type="button" className="primary" onClick={() => act({ kind: "clear", only: "failed" })}>
        Run what failed again
      </button>
    );
  if (reason.kind === "full_limit" && reason.limit === "pool") return <Link to="/capacity" className="button">Change the pool</Link>;
  return null;
}

function Unpause({ dagId }: { dagId: string }) {
  const pause = usePause(dagId);
  return (
    <button type="button" className="primary" disabled={pause.isPending} onClick={() => pause.mutate(false)}>
      Unpause {dagId}
    </button>
  );
}

/** Who is in the way, each a click away. */
function Links({ reason, of }: { reason: Reason; of: InstanceName }) {
  const found: { key: string; dagId: string; runId: string; taskId: string | null; map: number }[] = [];
  if ("holders" in reason && Array.isArray(reason.holders)) {
    for (const one of reason.holders) found.push({ key: `${one.dag_id}/${one.run_id} ${one.task_id} ${one.map_index}`, dagId: one.dag_id, runId: one.run_id, taskId: one.task_id, map: one.map_index });
  }
  if ("upstreams" in reason) {
    for (const one of reason.upstreams) {
      const map = "map_index" in one ? one.map_index : -1;
      found.push({ key: `${one.task_id} ${map}`, dagId: of.dagId, runId: of.runId, taskId: one.task_id, map });
    }
  }
  if (!found.length) return null;
  return (
    <p className="links">
      {found.map((one) =>
        one.taskId === null ? (
          <Link key={one.key} to="/dags/$dagId/runs/$runId" params={one}>
            {one.dagId} {one.runId}
          </Link>
        ) : (
          <Link key={one.key} to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId: one.dagId, runId: one.runId, taskId: one.taskId }} search={one.map < 0 ? {} : { map: one.map }}>
            {one.dagId === of.dagId && one.runId === of.runId ? one.taskId : `${one.dagId} ${one.taskId}`}
            {one.map >= 0 && `[${one.map}]`}
          </Link>
        ),
      )}
    </p>
  );
}

const upper = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
