import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { assetsQuery, dagQuery } from "../api/queries";
import { Empty, Found, Section } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count } from "../parts/words";

/** What its author says of a DAG, its params, tasks and limits, and the assets around it. */
export function AboutTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const dag = useQuery(dagQuery(dagId));
  const assets = useQuery(assetsQuery({ limit: 1000 }));
  const around = (assets.data?.items ?? []).filter((one) => one.producers.includes(dagId) || one.consumers.includes(dagId));
  return (
    <Found of={dag}>
      {(found) => (
        <>
          {found.doc ? <p className="doc">{found.doc}</p> : <Empty title="Its author says nothing of it.">The docstring of its function, or <code>doc_md</code>, would stand here.</Empty>}
          <dl className="facts-line">
            <div><dt>Runs at once</dt><dd>{found.max_active_runs ?? "any number"}</dd></div>
            <div><dt>Tasks at once</dt><dd>{found.max_active_tasks ?? "any number"}</dd></div>
            <div><dt>Time zone</dt><dd>{found.timezone ?? "UTC"}</dd></div>
            <div><dt>Changed</dt><dd><Time at={found.updated_at} /></dd></div>
          </dl>
          {found.params.length > 0 && (
            <Section title="Params">
              <Table
                label="Params"
                rows={found.params}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Param", cell: (one) => <strong>{one.name}</strong> },
                  { name: "Otherwise", cell: (one) => <code>{JSON.stringify(one.default)}</code> },
                  { name: "Schema", as: "widest", cell: (one) => <code>{JSON.stringify(one.schema)}</code> },
                ]}
              />
            </Section>
          )}
          {found.deadlines.length > 0 && (
            <Section title="Deadlines">
              <Table
                label="Deadlines"
                rows={found.deadlines}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Deadline", cell: (one) => <strong>{one.name}</strong> },
                  { name: "A run is to have ended", as: "wide", cell: (one) => one.when },
                  {
                    name: "Next",
                    cell: (one) =>
                      one.next_due_at ? (
                        <>
                          <Time at={one.next_due_at} /> {one.next_run_id ? <OfRun dagId={dagId} runId={one.next_run_id} /> : <span className="quiet">by the schedule</span>}
                        </>
                      ) : (
                        <span className="quiet">no run is near</span>
                      ),
                  },
                  { name: "Missed", as: "right", cell: (one) => count(one.missed) },
                  { name: "Last by", cell: (one) => one.last_missed_run_id && <OfRun dagId={dagId} runId={one.last_missed_run_id} /> },
                ]}
              />
              <p className="quiet note-below">Missed counts the newest 100 runs. A run that has ended in time, however it ended, has met its deadlines.</p>
            </Section>
          )}
          {around.length > 0 && (
            <Section title="Assets">
              <Table
                label="Assets"
                rows={around}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Asset", cell: (one) => <Link to="/assets" search={{ asset: one.name }}>{one.name}</Link> },
                  { name: "Here", cell: (one) => [one.producers.includes(dagId) && "it makes it", one.consumers.includes(dagId) && "it waits for it"].filter(Boolean).join(", ") },
                  { name: "Changed last", as: "right", cell: (one) => <Time at={one.last_event_at} /> },
                ]}
              />
            </Section>
          )}
          <Section title="Tasks">
            <Table
              label="Tasks"
              rows={found.tasks}
              keyOf={(one) => one.task_id}
              columns={[
                { name: "Task", cell: (one) => <strong>{one.task_id}</strong> },
                { name: "Operator", cell: (one) => one.operator },
                { name: "After", as: "wide", cell: (one) => one.upstream.join(", ") },
                { name: "Runs when", cell: (one) => one.trigger_rule.replaceAll("_", " ") },
                { name: "Pool", cell: (one) => one.pool },
                { name: "Queue", cell: (one) => one.queue },
                { name: "Weight", as: "right", cell: (one) => count(one.priority_weight) },
                { name: "Retries", as: "right", cell: (one) => count(one.retries) },
              ]}
            />
          </Section>
        </>
      )}
    </Found>
  );
}

const OfRun = ({ dagId, runId }: { dagId: string; runId: string }) => (
  <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }}>
    {runId}
  </Link>
);
