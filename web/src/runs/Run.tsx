import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { runQuery, tasksQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { usePages } from "../parts/paging";
import { Copied, Empty, Found, Meter } from "../parts/parts";
import { StateMark, StateName, stateWord } from "../parts/states";
import { Time, Took } from "../parts/time";
import { count, duration, firstLine, instanceName } from "../parts/words";
import { Operate, type Operation } from "./Operate";

const PAGE = 200; // instances of a run
const ENDED = new Set(["success", "failed"]);

export function Run() {
  const { dagId, runId } = useParams({ from: "/dags/$dagId/runs/$runId" });
  useTitle(`${runId} of ${dagId}`);
  const { from, pages } = usePages();
  const [operation, setOperation] = useState<Operation | null>(null);
  const run = useQuery(runQuery(dagId, runId));
  const tasks = useQuery(tasksQuery(dagId, runId, { ...from, limit: PAGE }));
  return (
    <div className="page">
      <p className="crumbs">
        <Link to="/dags/$dagId" params={{ dagId }}>
          {dagId}
        </Link>
      </p>
      {!run.data && <h1>{runId}</h1>}
      <Found of={run}>
        {(found) => (
          <>
            <div className="head">
              <h1>{found.run_id}</h1>
              <StateName state={found.state} />
              <span className="spread" />
              <Actions run={found} act={setOperation} />
            </div>
            {found.reason && <p className="reason">{found.reason}</p>}
            {found.quarantine && (
              <p className="reason">
                It is <Link to="/quarantine">set aside</Link>, because handling it failed: {found.quarantine}
              </p>
            )}
            <dl className="facts-line">
              <div><dt>Began</dt><dd><Time at={found.started_at ?? found.created_at} /></dd></div>
              <div><dt>Took</dt><dd><Took seconds={found.elapsed_s} running={found.state === "running"} /></dd></div>
              <div><dt>Kind</dt><dd>{found.run_type}</dd></div>
              {found.logical_date && <div><dt>Logical date</dt><dd><Time at={found.logical_date} as="moment" /></dd></div>}
              <div><dt>Version</dt><dd>{found.version_number}</dd></div>
              {found.priority !== 0 && <div><dt>Priority</dt><dd>{found.priority}</dd></div>}
              {Object.keys(found.params).length > 0 && <div><dt>Params</dt><dd><code>{JSON.stringify(found.params)}</code></dd></div>}
              {found.trace_id && <div><dt>Trace</dt><dd><code>{found.trace_id}</code> <Copied text={found.trace_id} label="Copy the trace's id" /></dd></div>}
              {found.deadlines.map((one) => (
                <div key={one.name}><dt>Deadline</dt><dd title={one.name}><Deadline of={one} /></dd></div>
              ))}
              {found.note && <div><dt>Note</dt><dd>{found.note}</dd></div>}
            </dl>
            <p className="legend">
              {Object.entries(found.tasks_by_state).map(([state, n]) => (
                <span key={state} className="state">
                  <StateMark state={state} size={14} />
                  {count(n ?? 0)} {stateWord(state)}
                </span>
              ))}
            </p>
            <Found of={tasks}>
              {(page) =>
                page.items.length || from.cursor ? (
                  <>
                    <Instances run={found} tasks={page.items} />
                    {pages(page.next)}
                  </>
                ) : (
                  <Empty title="The run has no tasks." />
                )
              }
            </Found>
            {operation && <Operate operation={operation} scope={{ dagId, runId }} close={() => setOperation(null)} />}
          </>
        )}
      </Found>
    </div>
  );
}

function Deadline({ of }: { of: Schemas["RunDeadline"] }) {
  const mark = { open: "scheduled", met: "success", missed: "failed" }[of.state];
  return (
    <span className="state">
      <StateMark state={mark} size={14} />
      {of.state === "open" ? <Time at={of.due_at} /> : <>{of.state}, <Time at={of.due_at} as="moment" /></>}
    </span>
  );
}

function Actions({ run, act }: { run: Schemas["RunDetail"]; act: (operation: Operation) => void }) {
  const ended = ENDED.has(run.state);
  return (
    <Allowed to="author">
      {run.is_being_changed && <span className="quiet">being changed</span>}
      {run.state === "failed" && (
        <button type="button" className="primary" onClick={() => act({ kind: "clear", only: "failed" })}>
          Run what failed again
        </button>
      )}
      <button type="button" onClick={() => act({ kind: "clear", only: null })}>
        Run all again
      </button>
      {run.state === "failed" && (
        <button type="button" onClick={() => act({ kind: "mark", state: "success" })}>
          Mark success
        </button>
      )}
      {!ended && (
        <button type="button" className="danger" onClick={() => act({ kind: "cancel" })}>
          Cancel
        </button>
      )}
    </Allowed>
  );
}

type Instance = Schemas["InstanceSummary"];

function Instances({ run, tasks }: { run: Schemas["RunDetail"]; tasks: Instance[] }) {
  const { dag_id: dagId, run_id: runId, started_at: began } = run;
  const progress = new Map(run.progress.map((one) => [`${one.task_id} ${one.map_index}`, one]));
  const begin = began ? Date.parse(began) : 0;
  const ends = tasks.map((task) => (task.started_at ? Date.parse(task.started_at) + 1000 * (task.elapsed_s ?? 0) : 0));
  const span = Math.max(1, Math.max(...ends, 0) - begin);
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Tasks of the run">
      <table className="list">
        <thead>
          <tr>
            <th>Task</th>
            <th>State</th>
            <th className="right">Try</th>
            <th className="right">Took</th>
            <th className="gantt-cell">
              In the run <span className="quiet number">{duration(span / 1000)}</span>
            </th>
            <th>Why</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={`${task.task_id} ${task.map_index}`}>
              <td>
                <Link
                  to="/dags/$dagId/runs/$runId/tasks/$taskId"
                  params={{ dagId, runId, taskId: task.task_id }}
                  search={task.map_index < 0 ? {} : { map: task.map_index }}
                >
                  {instanceName(task.task_id, task.map_index)}
                </Link>
              </td>
              <td>
                <StateName state={task.state} />
              </td>
              <td className="right number" data-label="Try">{task.try_number || ""}</td>
              <td className="right" data-label="Took">
                <Took seconds={task.elapsed_s} running={task.state === "running"} />
              </td>
              <td className="gantt-cell">
                <Bar task={task} begin={begin} span={span} />
              </td>
              <td className="wide">
                <span className="why-line">{firstLine(task.reason)}</span>
                <Said progress={progress.get(`${task.task_id} ${task.map_index}`)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What a running try says of its progress. */
function Said({ progress }: { progress: Schemas["TryProgress"] | undefined }) {
  if (!progress) return null;
  return (
    <span className="metered" title={progress.label}>
      <Meter used={progress.done} of={progress.total} label={progress.label} calm />
      <span className="quiet number">
        {progress.label} {count(progress.done)} of {count(progress.total)}
      </span>
    </span>
  );
}

/** When it ran within the run, and before that how long it was on its way to a worker. */
function Bar({ task, begin, span }: { task: Instance; begin: number; span: number }) {
  if (!task.started_at || !begin) return null;
  const started = Date.parse(task.started_at);
  const queued = task.queued_at ? Math.min(started, Date.parse(task.queued_at)) : started;
  const at = (instant: number) => `${Math.max(0, Math.min(100, (100 * (instant - begin)) / span))}%`;
  const share = (ms: number) => `${Math.max(0, Math.min(100, (100 * ms) / span))}%`;
  return (
    <div className="gantt" title={`on its way for ${duration((started - queued) / 1000)}, then ${duration(task.elapsed_s)}`}>
      <span className="lag" style={{ left: at(queued), width: share(started - queued) }} />
      <span className={`work s-${task.state}`} style={{ left: at(started), width: share(1000 * (task.elapsed_s ?? 0)) }} />
    </div>
  );
}
