import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useDeferredValue, useState } from "react";
import { ask, type Schemas } from "../api/client";
import { useLiveCapacity } from "../api/live";
import { executorsQuery, holdersQuery, planQuery, poolsQuery, refresh, resizedQuery, statusQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { Command, Dialog, Empty, Found, Meter, Section, Trouble } from "../parts/parts";
import { count, counted, duration, quoted } from "../parts/words";
import { Blocked, limitWord } from "./Blocked";

const LANES = 50; // of the line, the first ones: as many as are told

export function Capacity() {
  useTitle("Capacity");
  const pools = useQuery(poolsQuery);
  const executors = useQuery(executorsQuery);
  const status = useQuery(statusQuery);
  const plan = useQuery(planQuery(LANES));
  useLiveCapacity(LANES);
  return (
    <div className="page">
      <h1>Capacity</h1>
      <div className="columns">
        <Section title="Pools">
          <Found of={pools}>{(page) => <Pools pools={page.items} />}</Found>
        </Section>
        <Section title="Executors">
          <Found of={executors}>{(page) => <Executors executors={page.items} />}</Found>
        </Section>
      </div>
      <Section title="Queues">
        <Found of={status}>{(now) => <Queues queues={now.queues} executors={now.executors} />}</Found>
      </Section>
      <Section title="What blocks">
        <Found of={plan}>{(now) => <Blocked plan={now} />}</Found>
      </Section>
      <Section title="Startable, and not started">
        <Found of={status}>{(now) => <Late pace={now.pace} />}</Found>
      </Section>
      <Section title="What would start now" aside={plan.data ? counted(plan.data.starting, "task") : undefined}>
        <Found of={plan}>
          {(now) =>
            now.starts.length ? <Lanes lanes={now.starts.map((lane) => ({ lane, waits: null }))} /> : <Empty title="Nothing that could start waits for it." />
          }
        </Found>
      </Section>
      <Section title="The line, in its true order">
        <Found of={plan}>
          {(now) =>
            now.waiting.length ? (
              <Lanes lanes={now.waiting.map((one) => ({ lane: one.lane, waits: waitsFor(one) }))} />
            ) : (
              <Empty title="Nobody stands in line." />
            )
          }
        </Found>
      </Section>
    </div>
  );
}

/** How long tasks that nothing held up took to start: what schedulers cost, not limits. */
function Late({ pace }: { pace: Schemas["Status"]["pace"] }) {
  if (!pace) return <Empty title="No scheduler has told how many tasks it started." />;
  if (pace.late_s === null) return <p className="quiet">No task has started in the last minute.</p>;
  const late = pace.late_s < 1 ? `${Math.round(pace.late_s * 1000)} ms` : duration(pace.late_s);
  return (
    <p>
      {counted(pace.starts, "task")} started in the last minute, 95 % of them at most <strong className="number">{late}</strong> after they could.
    </p>
  );
}

const waitsFor = (one: Schemas["WaitingLane"]) =>
  one.by ? `${limitWord(one.by.limit)} ${one.by.name}` : (one.closed ?? "the next round of a scheduler");

function Pools({ pools }: { pools: Schemas["Pool"][] }) {
  const [open, setOpen] = useState<string | null>(null);
  const [changed, setChanged] = useState<Schemas["Pool"] | null>(null);
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label="Pools">
        <table className="list">
          <thead>
            <tr>
              <th>Pool</th>
              <th className="meter-cell">Taken</th>
              <th>Policy</th>
              <th><span className="visually-hidden">Change</span></th>
            </tr>
          </thead>
          <tbody>
            {pools.map((pool) => (
              <tr key={pool.name}>
                <td>
                  <Held kind="pool" name={pool.name} open={open === pool.name} toggle={() => setOpen(open === pool.name ? null : pool.name)} />
                </td>
                <td className="meter-cell">
                  <span className="metered">
                    <Meter used={pool.used} of={pool.slots} label={`pool ${pool.name}`} />
                    <span className="number">
                      {count(pool.used)} of {count(pool.slots)}
                    </span>
                  </span>
                </td>
                <td data-label="Policy">{pool.policy}</td>
                <td className="right">
                  <Allowed to="operator">
                    <button type="button" onClick={() => setChanged(pool)}>
                      Change
                    </button>
                  </Allowed>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {changed && <ChangePool pool={changed} close={() => setChanged(null)} />}
    </>
  );
}

/** A name that opens to who holds some of it. */
function Held({ kind, name, open, toggle }: { kind: "pool" | "queue"; name: string; open: boolean; toggle: () => void }) {
  return (
    <>
      <button type="button" className="linklike" aria-expanded={open} onClick={toggle}>
        {name}
      </button>
      {open && <Holders kind={kind} name={name} />}
    </>
  );
}

function Holders({ kind, name }: { kind: "pool" | "queue"; name: string }) {
  const holders = useQuery(holdersQuery(kind, name));
  return (
    <Found of={holders}>
      {(now) =>
        now.tasks.length ? (
          <ul className="holders">
            {now.tasks.map((task) => (
              <li key={`${task.dag_id} ${task.task_id}`}>
                <Link to="/dags/$dagId" params={{ dagId: task.dag_id }}>
                  {task.dag_id}
                </Link>{" "}
                {task.task_id}: {[
                  [task.running, "running"] as const,
                  [task.queued, "on their way"] as const,
                  [task.deferred, "deferred"] as const,
                ]
                  .filter(([n]) => n > 0)
                  .map(([n, word]) => `${count(n)} ${word}`)
                  .join(", ")}
              </li>
            ))}
          </ul>
        ) : (
          <p className="quiet">Nobody holds any of it.</p>
        )
      }
    </Found>
  );
}

function ChangePool({ pool, close }: { pool: Schemas["Pool"]; close: () => void }) {
  const [slots, setSlots] = useState(String(pool.slots));
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => ask("put", "/api/v1/pools/{name}", { names: { name: pool.name }, body: { slots: Number(slots) } }),
    onSuccess: async () => {
      close();
      await refresh(client);
    },
  });
  const wanted = Number(slots);
  const isGood = slots.trim() !== "" && Number.isInteger(wanted) && wanted >= 0;
  return (
    <Dialog title={`Slots of ${pool.name}`} open close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <Field id="slots" label="Slots" value={slots} change={setSlots} inputMode="numeric" aria-invalid={!isGood} />
        {isGood && <Following pool={pool} slots={wanted} />}
        <Command text={`evenflow pools set ${quoted(pool.name)} ${isGood ? wanted : "SLOTS"}`} />
        {change.error && <Trouble error={change.error} />}
        <footer>
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" className="primary" disabled={!isGood || change.isPending}>
            Set {isGood ? counted(wanted, "slot") : "slots"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** What a round of the scheduler would start if the pool had these slots, and what would still wait for it. */
function Following({ pool, slots }: { pool: Schemas["Pool"]; slots: number }) {
  const plan = useQuery(resizedQuery(pool.name, useDeferredValue(slots)));
  const taken =
    slots < pool.used
      ? `${counted(pool.used, "slot is", "slots are")} taken: what runs keeps its slots, and nothing starts here until fewer than ${count(slots)} are.`
      : `${counted(slots - pool.used, "slot")} would be free.`;
  return (
    <div className="following" aria-live="polite">
      <p className="quiet">{taken}</p>
      <Found of={plan}>{(would) => <Would plan={would} pool={pool.name} />}</Found>
    </div>
  );
}

function Would({ plan, pool }: { plan: Schemas["Plan"]; pool: string }) {
  const here = plan.starts.filter((lane) => lane.pool === pool);
  return (
    <>
      <p className="quiet">
        {plan.starting
          ? `${counted(plan.starting, "task")} would start at once${here.length ? `, here first ${here.map((lane) => `${lane.tasks.map((task) => (task.count > 1 ? `${task.task_id} × ${count(task.count)}` : task.task_id)).join(", ")} of ${lane.dag_id}`).join("; ")}` : ""}.`
          : "Nothing would start at once."}
      </p>
      <h3>What would still wait{plan.counted ? "" : ", at least"}</h3>
      <Blocked plan={plan} />
    </>
  );
}

function Executors({ executors }: { executors: Schemas["Executor"][] }) {
  return (
    <table className="list">
      <thead>
        <tr>
          <th>Executor</th>
          <th>Kind</th>
          <th>Queues</th>
          <th className="right">Taken</th>
        </tr>
      </thead>
      <tbody>
        {executors.map((executor) => (
          <tr key={executor.name}>
            <td>{executor.name}</td>
            <td data-label="Kind">{executor.kind}</td>
            <td data-label="Queues">{executor.queues.join(", ") || <span className="quiet">all others</span>}</td>
            <td className="right number" data-label="Taken">
              {count(executor.used)}
              {executor.slots < 1_000_000 && ` of ${count(executor.slots)}`}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Queues({ queues, executors }: { queues: Schemas["QueueStatus"][]; executors: Schemas["PushExecutorStatus"][] }) {
  const [open, setOpen] = useState<string | null>(null);
  const troubles = new Map(executors.map((one) => [one.name, one.trouble]));
  if (!queues.length) return <Empty title="No task runs or waits for a worker." />;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Queues">
      <table className="list">
        <thead>
          <tr>
            <th>Queue</th>
            <th className="right">Running</th>
            <th className="right">Waiting for a worker</th>
            <th className="right">Longest</th>
            <th className="right">Workers</th>
          </tr>
        </thead>
        <tbody>
          {queues.map((queue) => (
            <tr key={queue.queue}>
              <td>
                <Held kind="queue" name={queue.queue} open={open === queue.queue} toggle={() => setOpen(open === queue.queue ? null : queue.queue)} />
                {queue.executor && <span className="quiet"> of {queue.executor}</span>}
                <Told trouble={queue.trouble ?? troubles.get(queue.executor ?? "")} />
              </td>
              <td className="right number" data-label="Running">{count(queue.running)}</td>
              <td className="right number" data-label="Waiting for a worker">{count(queue.waiting)}</td>
              <td className="right number" data-label="Longest">{duration(queue.oldest_waiting_s) || "–"}</td>
              <td className="right number" data-label="Workers">{count(queue.workers)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Lanes({ lanes }: { lanes: { lane: Schemas["PlannedLane"]; waits: string | null }[] }) {
  return (
    <table className="list">
      <thead>
        <tr>
          <th className="right">#</th>
          <th>Tasks</th>
          <th>Of</th>
          <th>Pool</th>
          <th className="right">Priority</th>
          {lanes.some(({ waits }) => waits) && <th>Waits for</th>}
        </tr>
      </thead>
      <tbody>
        {lanes.map(({ lane, waits }, at) => (
          <tr key={at}>
            <td className="right number quiet">{at + 1}</td>
            <td>
              <Link to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId: lane.dag_id, runId: lane.run_id, taskId: lane.tasks[0]?.task_id ?? "" }}>
                {lane.tasks.map((task) => (task.count > 1 ? `${task.task_id} × ${count(task.count)}` : task.task_id)).join(", ")}
              </Link>
              {lane.count > lane.tasks.reduce((sum, task) => sum + task.count, 0) && <span className="quiet"> and more, {count(lane.count)} in all</span>}
            </td>
            <td>
              <Link to="/dags/$dagId/runs/$runId" params={{ dagId: lane.dag_id, runId: lane.run_id }}>
                {lane.dag_id} <span className="quiet">{lane.run_id}</span>
              </Link>
            </td>
            <td data-label="Pool">
              {lane.pool}
              {lane.pool_slots > 1 && ` × ${lane.pool_slots}`}
            </td>
            <td className="right number" data-label="Priority">{lane.run_priority ? `${lane.run_priority} / ${lane.priority}` : lane.priority}</td>
            {waits && <td data-label="Waits for">{waits}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const Told = ({ trouble }: { trouble: string | null | undefined }) => (trouble ? <div className="told">{trouble}</div> : null);
