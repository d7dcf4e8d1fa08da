import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Answer, Schemas } from "../api/client";
import { approvalsQuery, causeQuery, parseErrorsQuery, planQuery, runsQuery, statusQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Blocked } from "../capacity/Blocked";
import { Empty, Found, Section } from "../parts/parts";
import { stateOf } from "../fleet/services";
import { StateMark } from "../parts/states";
import { Time, Took } from "../parts/time";
import { count, counted, duration, firstLine, instanceName } from "../parts/words";

const SHOWN = 8; // runs of each list: the rest is a click away
const LATE_S = 5; // reports that no scheduler has taken for so long

export function Home() {
  useTitle("");
  const status = useQuery(statusQuery);
  const plan = useQuery(planQuery(20));
  const errors = useQuery(parseErrorsQuery);
  const running = useQuery(runsQuery({ state: "running", limit: SHOWN }));
  const failed = useQuery(runsQuery({ state: "failed", limit: SHOWN }));
  const asked = useQuery(approvalsQuery(SHOWN));
  return (
    <div className="page">
      <h1 className="visually-hidden">Home</h1>
      <Found of={status}>
        {(now) => <Verdict status={now} plan={plan.data} errors={errors.data?.items ?? []} />}
      </Found>
      {asked.data && asked.data.items.length > 0 && (
        <Section title="Waiting for people">
          <Questions asked={asked.data.items} />
        </Section>
      )}
      <div className="columns">
        <Section title="Running" aside={<Link to="/runs" search={{ state: "running" }}>All runs</Link>}>
          <Found of={running}>
            {(page) =>
              page.items.length ? (
                <RunLines runs={page.items} />
              ) : (
                <Empty title="Nothing runs.">
                  A run begins when its <Link to="/dags">DAG</Link>'s schedule says so, or when you trigger it.
                </Empty>
              )
            }
          </Found>
        </Section>
        <Section title="Failed last" aside={<Link to="/runs" search={{ state: "failed" }}>All that failed</Link>}>
          <Found of={failed}>
            {(page) => (page.items.length ? <RunLines runs={page.items} /> : <Empty title="No run has failed." />)}
          </Found>
        </Section>
      </div>
      <Section title="Waiting, and for what" aside={<Link to="/capacity">Capacity</Link>}>
        <Found of={plan}>{(now) => <Blocked plan={now} />}</Found>
      </Section>
      <Section title="Services">
        <Found of={status}>{(now) => <Services status={now} />}</Found>
      </Section>
    </div>
  );
}

function Questions({ asked }: { asked: Schemas["Approval"][] }) {
  return (
    <table className="list">
      <thead className="visually-hidden">
        <tr>
          <th>Question</th>
          <th>Of</th>
          <th>Asked</th>
        </tr>
      </thead>
      <tbody>
        {asked.map((one) => (
          <tr key={`${one.dag_id}/${one.run_id} ${one.task_id} ${one.map_index}`}>
            <td className="widest">
              <Link
                to="/dags/$dagId/runs/$runId/tasks/$taskId"
                params={{ dagId: one.dag_id, runId: one.run_id, taskId: one.task_id }}
                search={one.map_index < 0 ? {} : { map: one.map_index }}
                className="named"
              >
                <StateMark state="deferred" />
                <strong>{one.subject}</strong>
              </Link>
            </td>
            <td className="quiet ellipsis">
              {one.dag_id} {instanceName(one.task_id, one.map_index)}
              {one.may_answer ? "" : `, asks ${one.who.join(", ")}`}
            </td>
            <td className="right quiet">
              <Time at={one.asked_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type Status = Schemas["Status"];
type ParseError = Answer<"/api/v1/parse-errors", "get">["items"][number];

const lateness = (seconds: number) => (seconds < 1 ? `${seconds * 1000} ms` : duration(seconds));

function Verdict({ status, plan, errors }: { status: Status; plan?: Schemas["Plan"]; errors: ParseError[] }) {
  const troubles = troublesOf(status, errors);
  const running = status.queues.reduce((sum, queue) => sum + queue.running, 0);
  const unclaimed = status.queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const blocked = plan?.blocked.reduce((sum, one) => sum + one.tasks, 0) ?? 0;
  const facts = [
    `${counted(running, "task")} running`,
    ...(unclaimed ? [`${count(unclaimed)} on ${unclaimed === 1 ? "its" : "their"} way to a worker`] : []),
    ...(blocked ? [`${count(blocked)}${plan?.counted ? "" : " or more"} waiting for ${blocked === 1 ? "its" : "their"} turn`] : []),
    ...(status.triggers_running + status.triggers_waiting ? [`${count(status.triggers_running + status.triggers_waiting)} waiting for an event`] : []),
    ...(status.pace ? [`${count(status.pace.starts)} started in the last minute${status.pace.late_s === null ? "" : `, 95 % of them at most ${lateness(status.pace.late_s)} late`}`] : []),
    ...(status.runs_queued ? [`${counted(status.runs_queued, "run")} not begun`] : []),
  ];
  return (
    <div className={troubles.length ? "verdict bad" : "verdict"}>
      <p className="headline">
        <StateMark state={troubles.length ? "failed" : "success"} size={22} />
        <span>{troubles.length ? `${counted(troubles.length, "thing needs", "things need")} a look.` : "All well."}</span>
        <span className="facts">{facts.join(", ")}.</span>
      </p>
      {troubles.length > 0 && (
        <ul className="troubles">
          {troubles.map((trouble) => (
            <li key={trouble.text}>{trouble.to ? <Link to={trouble.to}>{trouble.text}</Link> : trouble.text}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface TroubleLine {
  text: string;
  to?: "/quarantine" | "/fleet" | "/capacity";
}

function troublesOf(status: Status, errors: ParseError[]): TroubleLine[] {
  const silent = status.services.filter((service) => !service.healthy);
  const quarantined = Object.entries(status.quarantined).filter(([, n]) => n > 0);
  const told = (text: string, to?: TroubleLine["to"]) => ({ text, ...(to ? { to } : {}) });
  return [
    ...status.missing.map((kind) => told(`No ${kind} is healthy${kind === "scheduler" ? ", so nothing starts" : ""}.`, "/fleet")),
    ...[...status.queues, ...status.executors].flatMap(({ trouble }) => (trouble ? [told(trouble, "/capacity")] : [])),
    ...silent.map((service) => told(`The ${service.kind} ${service.name} on ${service.host} is silent for ${duration(service.beat_age_s)}.`, "/fleet")),
    ...errors.map((error) => told(`${error.file}${error.error_line ? `, line ${error.error_line}` : ""}: ${lastLine(error.error)}`)),
    ...quarantined.map(([kind, n]) => told(`${counted(n, kind, `${kind}s`)} set aside, because handling failed`, "/quarantine")),
    ...status.outrun.map((one) => told(`The worker ${one.worker} cannot end ${one.dag_id}/${one.run_id} ${one.task_id}.`)),
    ...status.not_active.map((one) => told(`${one.kind} ${one.name} is ${one.state}.`, "/fleet")),
    ...((status.oldest_report_s ?? 0) > LATE_S ? [told(`Reports of workers wait since ${duration(status.oldest_report_s)}.`)] : []),
  ];
}

const lastLine = (text: string) => text.trim().split("\n").at(-1) ?? "";

function RunLines({ runs }: { runs: Schemas["RunSummary"][] }) {
  return (
    <table className="list">
      <thead className="visually-hidden">
        <tr>
          <th>Run</th>
          <th>Took</th>
          <th>Began</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={`${run.dag_id}/${run.run_id}`}>
            <td className="widest">
              <Link to="/dags/$dagId/runs/$runId" params={{ dagId: run.dag_id, runId: run.run_id }} className="named">
                <StateMark state={run.state} />
                <strong>{run.dag_id}</strong> <span className="quiet ellipsis">{run.run_id}</span>
              </Link>
              {run.state === "failed" && <Cause run={run} />}
            </td>
            <td className="right">
              <Took seconds={run.elapsed_s} running={run.state === "running"} />
            </td>
            <td className="right quiet">
              <Time at={run.ended_at ?? run.started_at ?? run.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The error's first line, which leads to its log. */
function Cause({ run }: { run: Schemas["RunSummary"] }) {
  const cause = useQuery(causeQuery(run.dag_id, run.run_id, run.ended_at));
  const task = cause.data?.items[0];
  if (!task) return run.reason ? <p className="why-line">{firstLine(run.reason)}</p> : null;
  return (
    <Link
      to="/dags/$dagId/runs/$runId/tasks/$taskId"
      params={{ dagId: run.dag_id, runId: run.run_id, taskId: task.task_id }}
      search={task.map_index < 0 ? {} : { map: task.map_index }}
      className="why-line"
    >
      {instanceName(task.task_id, task.map_index)}: {firstLine(task.reason) || "failed"}
    </Link>
  );
}

function Services({ status }: { status: Status }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Services">
      <table className="list">
        <thead>
          <tr>
            <th>Service</th>
            <th>Kind</th>
            <th>Host</th>
            <th>State</th>
            <th className="right">Last heard</th>
            <th className="right">Since</th>
          </tr>
        </thead>
        <tbody>
          {status.services.map((service) => (
            <tr key={`${service.kind} ${service.name} ${service.started_at}`}>
              <td>
                <span className="state">
                  <StateMark state={service.healthy ? "success" : "failed"} />
                  {service.name}
                </span>
              </td>
              <td>{service.kind}</td>
              <td className="ellipsis">{service.host}</td>
              <td>{stateOf(service, status.not_active)}</td>
              <td className="right number" data-label="Last heard">{duration(service.beat_age_s)} ago</td>
              <td className="right" data-label="Since">
                <Time at={service.started_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
