// What history says: the marts that the history pipeline returns, as charts with their tables, and what is worth a look.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { insightsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Lines } from "../parts/Lines";
import { Command, Empty, Found, Section } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count, counted, duration, instanceName } from "../parts/words";

type Made = Schemas["Insights"];
const SHOWN = 6; // causes in one chart: as many as it has colours

export function Insights() {
  useTitle("Insights");
  const insights = useQuery(insightsQuery);
  return (
    <div className="page">
      <h1>Insights</h1>
      <Found of={insights}>{(found) => (found.made_at ? <Told of={found} /> : <Off />)}</Found>
    </div>
  );
}

function Off() {
  return (
    <Empty title="The history pipeline has returned nothing yet.">
      <p>Once a day it turns history into what is shown here: what tasks wait for, what they cost, which limit is worth raising. It is off until a folder for it is named:</p>
      <p><Command text="export EVENFLOW_HISTORY=/var/lib/evenflow-history" /></p>
      <p><Command text="evenflow up" /></p>
      <p>Then this runs it at once:</p>
      <p><Command text="evenflow runs trigger history_pipeline" /></p>
    </Empty>
  );
}

const hours = (of: number) => of.toLocaleString("en-US", { maximumFractionDigits: 1 });
const DagLink = ({ dagId }: { dagId: string }) => <Link to="/dags/$dagId" params={{ dagId }}>{dagId}</Link>;

/** The causes that took most, all days together. Running is none of waiting. */
function causesOf({ days }: Made): string[] {
  const sums = new Map<string, number>();
  for (const day of days) for (const [cause, seconds] of Object.entries(day.seconds)) if (cause !== "running") sums.set(cause, (sums.get(cause) ?? 0) + seconds);
  return [...sums].sort(([, a], [, b]) => b - a).slice(0, SHOWN).map(([cause]) => cause);
}

function Told({ of }: { of: Made }) {
  const at = of.days.map((one) => Date.parse(`${one.day}T00:00:00Z`) / 1000);
  const line = (name: string, value: (day: Made["days"][number]) => number | null) => ({ name, values: of.days.map(value) });
  return (
    <>
      <dl className="facts-line">
        <div><dt>Made</dt><dd><Time at={of.made_at} /></dd></div>
        <div><dt>Days</dt><dd className="number">{count(of.days.length)}</dd></div>
        <div><dt>Violations</dt><dd className="number">{of.violations ? count(of.violations) : "none"}</dd></div>
      </dl>
      {of.violations > 0 && (
        <p className="trouble" role="alert">
          History has {counted(of.violations, "thing")} that must never be. <code>evenflow insights prove</code> lists them.
        </p>
      )}
      <p>
        The whole report is a page of its own: <Command text="evenflow insights report $EVENFLOW_HISTORY --out report.html" />
      </p>
      <Section title="What tasks waited for">
        <Lines label="Hours waited, by cause" unit=" h" at={at} lines={causesOf(of).map((cause) => line(cause, (day) => (day.seconds[cause] ?? 0) / 3600))} />
      </Section>
      <div className="columns">
        <Section title="How late">
          <Lines
            label="Seconds late, the 99th percentile of the latest DAG"
            unit=" s"
            at={at}
            lines={[line("runs, after they were due", (day) => day.run_p99_s), line("tries, for limits and workers", (day) => day.wait_p99_s)]}
          />
        </Section>
        <Section title="What it took">
          <Lines label="Hours of slots and of waiting" unit=" h" at={at} lines={[line("slot hours", (day) => day.slot_hours), line("hours waited", (day) => day.wait_hours)]} />
        </Section>
      </div>
      <Section title="Limits that are worth raising" aside={<Link to="/capacity">Capacity</Link>}>
        {of.advice.length ? (
          <Table
            label="Limits that are worth raising"
            rows={of.advice}
            keyOf={(one) => `${one.cause} ${one.limit_name}`}
            columns={[
              { name: "Limit", cell: (one) => `${one.cause} ${one.limit_name ?? ""}` },
              { name: "More", as: "right", cell: (one) => `+ ${one.more}` },
              { name: "Would have saved", as: "right", cell: (one) => `${hours(one.saved_hours)} h` },
              { name: "Of hours waited", as: "right", cell: (one) => `${hours(one.wait_hours)} h` },
            ]}
          />
        ) : (
          <Empty title="No limit held anything up." />
        )}
      </Section>
      <div className="columns">
        <Section title="Dearest DAGs">
          <Table
            label="Dearest DAGs"
            rows={of.dearest}
            keyOf={(one) => one.dag_id}
            columns={[
              { name: "DAG", cell: (one) => <DagLink dagId={one.dag_id} /> },
              { name: "Owner", cell: (one) => one.owner ?? "" },
              { name: "Tries", as: "right", cell: (one) => count(one.tries) },
              { name: "Slot hours", as: "right", cell: (one) => hours(one.slot_hours) },
              { name: "Hours waited", as: "right", cell: (one) => hours(one.wait_hours) },
            ]}
          />
        </Section>
        <Section title="Tasks that take longer or shorter than before">
          {of.drifting.length ? (
            <Table
              label="Tasks that take longer or shorter than before"
              rows={of.drifting}
              keyOf={(one) => `${one.dag_id} ${one.task_id}`}
              columns={[
                { name: "Task", cell: (one) => <><DagLink dagId={one.dag_id} /> {one.task_id}</> },
                { name: "Median", as: "right", cell: (one) => duration(one.p50_s) },
                { name: "Of before", as: "right", cell: (one) => `${hours(100 * one.drift)} %` },
              ]}
            />
          ) : (
            <Empty title="All tasks take as long as they did." />
          )}
        </Section>
      </div>
      <Section title="Tries that ran far longer than usual">
        {of.anomalies.length ? (
          <Table
            label="Tries that ran far longer than usual"
            rows={of.anomalies}
            keyOf={(one) => `${one.dag_id} ${one.run_id} ${one.task_id} ${one.map_index} ${one.try_number}`}
            columns={[
              { name: "Began", cell: (one) => <Time at={one.began_at} /> },
              { name: "Try", as: "wide", cell: (one) => <LongTry of={one} /> },
              { name: "Ran", as: "right", cell: (one) => duration(one.seconds) },
              { name: "Usual", as: "right", cell: (one) => duration(one.usual_s) },
            ]}
          />
        ) : (
          <Empty title="None did." />
        )}
      </Section>
    </>
  );
}

function LongTry({ of }: { of: Made["anomalies"][number] }) {
  const name = `${of.dag_id} ${instanceName(of.task_id, of.map_index)}, try ${of.try_number}`;
  if (!of.run_id) return <>{name}</>;
  return (
    <Link
      to="/dags/$dagId/runs/$runId/tasks/$taskId"
      params={{ dagId: of.dag_id, runId: of.run_id, taskId: of.task_id }}
      search={{ try: of.try_number, ...(of.map_index < 0 ? {} : { map: of.map_index }) }}
    >
      {name} of {of.run_id}
    </Link>
  );
}
