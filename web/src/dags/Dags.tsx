import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ask, type Schemas } from "../api/client";
import { dagsQuery, refresh } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed, useWhyNot } from "../parts/Allowed";
import { Icon } from "../parts/icons";
import { usePages } from "../parts/paging";
import { Command, Empty, Found, Switch } from "../parts/parts";
import { stateWord } from "../parts/states";
import { Time } from "../parts/time";
import { counted, duration } from "../parts/words";

const PAGE = 50;

export function Dags() {
  useTitle("DAGs");
  const { search = "" } = useSearch({ from: "/dags" });
  const { from, pages } = usePages();
  const navigate = useNavigate({ from: "/dags" });
  const dags = useQuery(dagsQuery(search, { ...from, limit: PAGE }));
  return (
    <div className="page">
      <div className="head">
        <h1>DAGs</h1>
        <input
          type="search"
          value={search}
          aria-label="Search DAGs by name, tag or owner"
          placeholder="Name, tag or owner"
          onChange={(event) => void navigate({ search: { search: event.target.value || undefined }, replace: true })}
        />
      </div>
      <Found of={dags}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <table className="list dags">
                <thead>
                  <tr>
                    <th>On</th>
                    <th>DAG</th>
                    <th>Last runs</th>
                    <th>Schedule</th>
                    <th>Next</th>
                    <th><span className="visually-hidden">Trigger</span></th>
                  </tr>
                </thead>
                <tbody>
                  {page.items.map((dag) => (
                    <DagRow key={dag.dag_id} dag={dag} />
                  ))}
                </tbody>
              </table>
              {pages(page.next)}
            </>
          ) : search ? (
            <Empty title={`No DAG has “${search}” in its name, tags or owner.`} />
          ) : (
            <Empty title="There is no DAG yet.">
              <p>Put a DAG file into the DAG folder: it is found at once. To look whether one can be read, type:</p>
              <Command text="evenflow dags check FILE" />
            </Empty>
          )
        }
      </Found>
    </div>
  );
}

export function usePause(dagId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (isPaused: boolean) => ask("patch", "/api/v1/dags/{dag_id}", { names: { dag_id: dagId }, body: { is_paused: isPaused } }),
    onSettled: () => refresh(client),
  });
}

function DagRow({ dag }: { dag: Schemas["DagSummary"] }) {
  const pause = usePause(dag.dag_id);
  const whyNot = useWhyNot("author");
  return (
    <tr className={dag.is_paused ? "paused" : undefined}>
      <td>
        <Allowed to="author">
          <Switch on={!dag.is_paused} busy={pause.isPending} label={`${dag.display_name} is on`} change={(on) => pause.mutate(!on)} />
        </Allowed>
      </td>
      <td className="wide">
        <Link to="/dags/$dagId" params={{ dagId: dag.dag_id }} className="named">
          <strong>{dag.display_name}</strong>
        </Link>
        {dag.tags.map((tag) => (
          <Link key={tag} to="/dags" search={{ search: tag }} className="tag">
            {tag}
          </Link>
        ))}
        {(dag.owner || dag.description) && (
          <p className="quiet ellipsis">
            {dag.owner && (
              <Link to="/dags" search={{ search: dag.owner }} aria-label={`DAGs of ${dag.owner}`}>
                {dag.owner}
              </Link>
            )}
            {dag.owner && dag.description && ": "}
            {dag.description}
          </p>
        )}
      </td>
      <td>
        <Strip dagId={dag.dag_id} runs={dag.recent_runs} />
      </td>
      <td data-label="Schedule">{dag.schedule ?? <span className="quiet">when triggered</span>}</td>
      <td data-label="Next" className={dag.is_paused || dag.next_run_at ? undefined : "nothing"}>{dag.is_paused ? <span className="quiet">{dag.service_state}</span> : dag.next_run_at ? <Time at={dag.next_run_at} /> : <span className="quiet">–</span>}</td>
      <td className="right">
        {whyNot === null ? (
          <Link to="/dags/$dagId" params={{ dagId: dag.dag_id }} search={{ trigger: true }} className="button" aria-label={`Trigger ${dag.display_name}`}>
            <Icon name="play" /> Trigger
          </Link>
        ) : (
          <button type="button" disabled title={whyNot} aria-label={`Trigger ${dag.display_name}`}>
            <Icon name="play" /> Trigger
          </button>
        )}
      </td>
    </tr>
  );
}

/** The last runs, the newest at the right: how each ended by its colour and shape, how long it took by its height. */
function Strip({ dagId, runs }: { dagId: string; runs: Schemas["RecentRun"][] }) {
  if (!runs.length) return <span className="quiet">has not run</span>;
  const longest = Math.max(...runs.map((run) => run.elapsed_s ?? 0), 0.001);
  return (
    <span className="strip" role="group" aria-label={`The last ${counted(runs.length, "run")}`}>
      {[...runs].reverse().map((run) => (
        <Link
          key={run.run_id}
          to="/dags/$dagId/runs/$runId"
          params={{ dagId, runId: run.run_id }}
          preload={false}
          tabIndex={-1}
          className={`bar s-${run.state}`}
          style={{ height: `${30 + 70 * ((run.elapsed_s ?? 0) / longest)}%` }}
          title={`${run.run_id}: ${stateWord(run.state)}${run.elapsed_s === null ? "" : `, ${duration(run.elapsed_s)}`}`}
          aria-label={`${run.run_id}: ${stateWord(run.state)}`}
        />
      ))}
    </span>
  );
}
