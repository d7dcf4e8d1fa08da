import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { linksQuery, namesOf, renderedQuery, runQuery, sparkUiQuery, taskEventsQuery, tasksQuery, whyQuery, xcomsQuery, type InstanceName } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { usePages } from "../parts/paging";
import { Detail } from "../parts/Detail";
import { Empty, Found, Meter } from "../parts/parts";
import { StateMark, StateName, stateWord } from "../parts/states";
import { Time, Took } from "../parts/time";
import { count, instanceName } from "../parts/words";
import { Operate, type Operation } from "../runs/Operate";
import { AskBox } from "./Ask";
import { Log } from "./Log";
import { Spark } from "./Spark";
import { Tries } from "./Tries";
import { WhyBox } from "./Why";

const TABS = [
  ["log", "Log"],
  ["tries", "Tries"],
  ["events", "Events"],
  ["results", "Results"],
  ["rendered", "Rendered"],
  ["spark", "Spark"],
] as const;
const AT_WORK = ["running", "deferred"];
const INSTANCES = 200; // of a mapped task, on a page

export function Task() {
  const { dagId, runId, taskId } = useParams({ from: "/dags/$dagId/runs/$runId/tasks/$taskId" });
  const { map } = useSearch({ from: "/dags/$dagId/runs/$runId/tasks/$taskId" });
  useTitle(`${instanceName(taskId, map ?? -1)} of ${dagId}`);
  const { from, pages } = usePages();
  const instances = useQuery(tasksQuery(dagId, runId, { task_id: taskId, ...from, limit: INSTANCES }));
  return (
    <div className="page">
      <p className="crumbs">
        <Link to="/dags/$dagId" params={{ dagId }}>
          {dagId}
        </Link>
        <span aria-hidden="true">/</span>
        <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }}>
          {runId}
        </Link>
      </p>
      {!instances.data && <h1>{instanceName(taskId, map ?? -1)}</h1>}
      <Found of={instances}>
        {(page) => {
          const chosen = page.items.find((one) => one.map_index === (map ?? -1));
          if (chosen) return <Instance of={{ dagId, runId, taskId, map: chosen.map_index }} instance={chosen} />;
          if (map !== undefined && (page.more || from.cursor)) return <Instance of={{ dagId, runId, taskId, map }} />;
          if ((!page.items.length && !from.cursor) || map !== undefined) return <Unknown of={instanceName(taskId, map ?? -1)} />;
          return (
            <>
              <h1>{taskId}</h1>
              <Mapped instances={page.items} dagId={dagId} runId={runId} taskId={taskId} />
              {pages(page.next)}
            </>
          );
        }}
      </Found>
    </div>
  );
}

function Unknown({ of }: { of: string }) {
  return (
    <>
      <h1>{of}</h1>
      <Empty title="The run has no such task." />
    </>
  );
}

/** What the running try says of itself, by `progress` of its context. */
function Progress({ of }: { of: InstanceName }) {
  const run = useQuery(runQuery(of.dagId, of.runId));
  const told = run.data?.progress.filter((one) => one.task_id === of.taskId && one.map_index === of.map) ?? [];
  return told.map((one) => (
    <div key={one.label}>
      <dt>{one.label}</dt>
      <dd>
        <span className="metered">
          <Meter used={one.done} of={one.total} label={one.label} calm />
          <span className="number">
            {count(one.done)} of {count(one.total)}
          </span>
        </span>
      </dd>
    </div>
  ));
}

/** A link to the Spark UI of the running try, once it has told of one. */
function SparkUi({ of }: { of: InstanceName }) {
  const found = useQuery(sparkUiQuery(of)).data;
  return (
    found && (
      <div>
        <dt>Spark</dt>
        <dd>
          <a href={found.path} target="_blank" rel="noopener">
            {found.application_id}
          </a>
        </dd>
      </div>
    )
  );
}

/** Where the work of an operator of Airflow's is to be seen outside. The API gives URLs of HTTP alone. */
function OutsideLinks({ of }: { of: InstanceName }) {
  const links = Object.entries(useQuery(linksQuery(of)).data?.links ?? {});
  return (
    links.length > 0 && (
      <div>
        <dt>Outside</dt>
        <dd className="outside">
          {links.map(([name, url]) => (
            <a key={name} href={url} target="_blank" rel="noopener noreferrer">
              {name}
            </a>
          ))}
        </dd>
      </div>
    )
  );
}

/** Of a mapped task: a mark for each instance. */
function Mapped({ instances, dagId, runId, taskId }: { instances: Schemas["InstanceSummary"][]; dagId: string; runId: string; taskId: string }) {
  return (
    <>
      <p className="quiet">It is mapped. Each mark is one instance.</p>
      <ul className="instances">
        {instances.map((one) => (
          <li key={one.map_index}>
            <Link
              to="/dags/$dagId/runs/$runId/tasks/$taskId"
              params={{ dagId, runId, taskId }}
              search={{ map: one.map_index }}
              preload={false}
              title={`${instanceName(taskId, one.map_index)}: ${stateWord(one.state)}`}
            >
              <StateMark state={one.state} /> <span className="number">{count(one.map_index)}</span>
              <span className="visually-hidden"> {stateWord(one.state)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function Instance({ of, instance }: { of: InstanceName; instance?: Schemas["InstanceSummary"] }) {
  const { tab = "log", try: chosen } = useSearch({ from: "/dags/$dagId/runs/$runId/tasks/$taskId" });
  const [operation, setOperation] = useState<Operation | null>(null);
  const navigate = useNavigate();
  const tries = instance?.try_number ?? 0;
  const atWork = AT_WORK.includes(instance?.state ?? "");
  const asks = useQuery(whyQuery(of)).data?.reasons?.some((reason) => reason.kind === "awaits_answer") ?? false;
  const isSpark = instance?.operator.startsWith("spark") ?? false;
  return (
    <>
      <div className="head">
        <h1>{instanceName(of.taskId, of.map)}</h1>
        {instance && <StateName state={instance.state} />}
        <span className="spread" />
        <Allowed to="author">
          <button type="button" onClick={() => setOperation({ kind: "clear", only: null })}>
            Run again
          </button>
          <button type="button" onClick={() => setOperation({ kind: "mark", state: "success" })}>
            Mark success
          </button>
          <button type="button" onClick={() => setOperation({ kind: "mark", state: "failed" })}>
            Mark failed
          </button>
        </Allowed>
      </div>
      {instance && (
        <dl className="facts-line">
          <div><dt>Operator</dt><dd>{instance.operator}</dd></div>
          <div><dt>Try</dt><dd>{tries || "none yet"}</dd></div>
          <div><dt>Began</dt><dd><Time at={instance.started_at} /></dd></div>
          <div><dt>Took</dt><dd><Took seconds={instance.elapsed_s} running={instance.state === "running"} /></dd></div>
          {instance.worker && <div><dt>Worker</dt><dd>{instance.worker}</dd></div>}
          {atWork && <Progress of={of} />}
          {atWork && isSpark && <SparkUi of={of} />}
          {tries > 0 && <OutsideLinks key={`${tries} ${instance.state}`} of={of} />}
          {instance.losses > 0 && <div><dt>Lost</dt><dd title="by infrastructure; that uses up no try">{instance.losses} times</dd></div>}
        </dl>
      )}
      {asks && <AskBox of={of} />}
      <WhyBox of={of} act={setOperation} />
      <nav className="tabs" aria-label="Views of the task">
        {TABS.filter(([name]) => name !== "spark" || isSpark).map(([name, title]) => (
          <Link key={name} to="." search={(before) => ({ ...before, tab: name === "log" ? undefined : name })} replace activeOptions={{ exact: true, includeSearch: true }} aria-current={tab === name ? "page" : undefined}>
            {title}
          </Link>
        ))}
        {(tab === "log" || tab === "spark") && tries > 1 && (
          <label className="tries">
            Try{" "}
            <select
              value={chosen ?? tries}
              onChange={(event) => {
                const picked = Number(event.target.value);
                void navigate({ to: ".", search: (before) => ({ ...before, try: picked === tries ? undefined : picked }), replace: true });
              }}
            >
              {Array.from({ length: tries }, (_, at) => (
                <option key={at} value={at + 1}>
                  {at + 1} of {tries}
                </option>
              ))}
            </select>
          </label>
        )}
      </nav>
      {tab === "log" && <Log key={`${of.map} ${chosen ?? 0} ${tries}`} of={of} tryNumber={chosen} failed={instance?.state === "failed" || chosen !== undefined} />}
      {tab === "tries" && <Tries of={of} />}
      {tab === "events" && <Events of={of} />}
      {tab === "results" && <Results of={of} />}
      {tab === "rendered" && <Rendered of={of} />}
      {tab === "spark" && <Spark of={of} tryNumber={chosen} active={atWork && (chosen === undefined || chosen === tries)} />}
      {operation && (
        <Operate
          operation={operation}
          scope={operation.kind === "clear" && operation.only === "failed" ? { dagId: of.dagId, runId: of.runId } : of}
          close={() => setOperation(null)}
        />
      )}
    </>
  );
}

function Events({ of }: { of: InstanceName }) {
  const events = useQuery(taskEventsQuery(of));
  return (
    <Found of={events}>
      {(page) =>
        page.items.length ? (
          <table className="list">
            <thead>
              <tr>
                <th>At</th>
                <th>What</th>
                <th>Then</th>
                <th className="right">Try</th>
                <th>Who</th>
                <th>Detail</th>
              </tr>
            </thead>
            <tbody>
              {page.items.map((event, at) => (
                <tr key={at}>
                  <td>
                    <Time at={event.at} as="moment" />
                  </td>
                  <td>{event.event.replaceAll("_", " ")}</td>
                  <td>
                    <StateName state={event.state} />
                  </td>
                  <td className="right number" data-label="Try">{event.try_number || ""}</td>
                  <td data-label="Who">{event.actor}</td>
                  <td className="wide"><Detail detail={event.detail} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <Empty title="Nothing has happened to it yet." />
        )
      }
    </Found>
  );
}

function Results({ of }: { of: InstanceName }) {
  const xcoms = useQuery(xcomsQuery(of));
  return (
    <Found of={xcoms}>
      {(page) => {
        const own = page.items.filter((one) => one.map_index === of.map);
        return own.length ? (
          <table className="list">
            <thead>
              <tr>
                <th>Key</th>
                <th className="right">Bytes</th>
                <th className="right">Elements</th>
                <th>At</th>
                <th>To see it</th>
              </tr>
            </thead>
            <tbody>
              {own.map((one) => (
                <tr key={one.key}>
                  <td>{one.key}</td>
                  <td className="right number" data-label="Bytes">{count(one.size)}</td>
                  <td className="right number" data-label="Elements">{one.length === null ? "" : count(one.length)}</td>
                  <td data-label="At">
                    <Time at={one.created_at} />
                  </td>
                  <td>{one.is_secret ? "it holds a secret, and is not shown" : one.is_stored ? "it lies in object storage" : <Value of={of} name={one.key} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <Empty title="It has returned and pushed nothing." />
        );
      }}
    </Found>
  );
}

function Value({ of, name }: { of: InstanceName; name: string }) {
  const [shown, setShown] = useState(false);
  const value = useQuery({
    queryKey: ["xcom", of, name],
    enabled: shown,
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/xcoms/{key}", { names: { ...namesOf(of), key: name }, query: { map_index: of.map }, signal }),
  });
  if (!shown)
    return (
      <button type="button" onClick={() => setShown(true)}>
        Show
      </button>
    );
  return <Found of={value}>{(found) => <pre className="value">{JSON.stringify(found.value, null, 1)}</pre>}</Found>;
}

function Rendered({ of }: { of: InstanceName }) {
  const rendered = useQuery(renderedQuery(of));
  return (
    <Found of={rendered}>
      {(found) => {
        const fields = Object.entries(found.fields);
        return fields.length ? (
          <dl className="rendered">
            {fields.map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <pre className="value">{text}</pre>
                </dd>
              </div>
            ))}
          </dl>
        ) : (
          <Empty title="It has no template field." />
        );
      }}
    </Found>
  );
}
