// A fleet that grows and shrinks by itself: what the autoscaler saw, what it asked for, and its reason.
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../api/client";
import { fleetLooksQuery, fleetQuery, fleetStepsQuery } from "../api/queries";
import { Lines } from "../parts/Lines";
import { Empty, Found } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count, duration } from "../parts/words";

export function Autoscaled({ fleet }: { fleet: Schemas["FleetSummary"] }) {
  const detail = useQuery(fleetQuery(fleet.name));
  const looks = useQuery(fleetLooksQuery(fleet.name));
  const steps = useQuery(fleetStepsQuery(fleet.name));
  return (
    <article className="fleet" aria-label={`Fleet ${fleet.name}`}>
      <h3>{fleet.name}</h3>
      <dl className="facts-line">
        <div><dt>Workers by</dt><dd>{fleet.target}</dd></div>
        <div><dt>Queues</dt><dd>{fleet.queues.join(", ")}</dd></div>
        <div><dt>Workers</dt><dd className="number">{count(fleet.replicas)}</dd></div>
        <div><dt>Bounds</dt><dd className="number">{count(fleet.min)} to {count(fleet.max)}</dd></div>
        {(fleet.out_of_service ?? 0) > 0 && <div><dt>Out of service</dt><dd className="number">{count(fleet.out_of_service ?? 0)}</dd></div>}
        <div><dt>Running</dt><dd className="number">{count(fleet.running ?? 0)}</dd></div>
        <div><dt>Waiting</dt><dd className="number">{count(fleet.waiting ?? 0)}</dd></div>
        {(fleet.expected ?? 0) > 0 && <div><dt>Expected</dt><dd className="number">{count(fleet.expected ?? 0)}</dd></div>}
        <div><dt>Longest wait</dt><dd className="number">{duration(fleet.oldest_wait_s)}</dd></div>
        <div><dt>Last look</dt><dd><Time at={fleet.seen_at} /></dd></div>
      </dl>
      {fleet.reason && <p className="note">{fleet.reason}</p>}
      <Found of={looks}>
        {(page) => {
          const seen = [...page.items].reverse();
          return seen.length > 1 ? (
            <Lines
              label={`Workers and work of ${fleet.name}`}
              at={seen.map((look) => Date.parse(look.at) / 1000)}
              lines={[
                { name: "workers needed", values: seen.map((look) => look.asked) },
                { name: "slots ready", values: seen.map((look) => look.ready) },
                { name: "tasks running", values: seen.map((look) => look.running) },
                { name: "tasks waiting", values: seen.map((look) => look.waiting) },
              ]}
            />
          ) : (
            <Empty title="It has not looked yet." />
          );
        }}
      </Found>
      <h4>Workers, in the order in which they would go</h4>
      <Found of={detail}>{(now) => <Workers fleet={now} />}</Found>
      <h4>What was done, the newest first</h4>
      <Found of={steps}>
        {(page) =>
          page.items.length ? (
            <Table
              label={`Steps of ${fleet.name}`}
              rows={page.items.filter((step) => step.words.length || (step.is_open && !step.done_at))}
              keyOf={(step) => `${step.plan} ${step.step} ${step.at}`}
              columns={[
                { name: "At", cell: (step) => <Time at={step.at} /> },
                { name: "Done", cell: (step) => (step.is_open && !step.done_at ? "not yet" : <Time at={step.done_at} />) },
                { name: "What", as: "widest", cell: (step) => step.words.map((line) => <div key={line}>{line}</div>) },
              ]}
            />
          ) : (
            <p className="quiet">It has changed nothing yet.</p>
          )
        }
      </Found>
    </article>
  );
}

/** Those that would go first come first, as `evenflow autoscaler show` has it. */
function Workers({ fleet }: { fleet: Schemas["FleetDetail"] }) {
  if (!fleet.workers.length) return <p className="quiet">No worker serves its queues.</p>;
  return (
    <Table
      label={`Workers of ${fleet.name}`}
      rows={fleet.workers}
      keyOf={(worker) => worker.name}
      columns={[
        { name: "Worker", as: "name", cell: (worker) => <strong>{worker.name}</strong> },
        { name: "Ready", cell: (worker) => (worker.is_ready ? "yes" : "no") },
        { name: "Running", as: "right", cell: (worker) => count(worker.running) },
        { name: "Rank", as: "right", cell: (worker) => (worker.rank === null ? "–" : count(worker.rank)) },
        { name: "Mark", as: "widest", cell: (worker) => worker.mark },
      ]}
    />
  );
}
