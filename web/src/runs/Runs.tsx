import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { runsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { usePages } from "../parts/paging";
import { Empty, Found } from "../parts/parts";
import { StateName } from "../parts/states";
import { Time, Took } from "../parts/time";
import { firstLine } from "../parts/words";

const PAGE = 100;
const STATES = ["queued", "running", "success", "failed"] as const;

export function Runs() {
  useTitle("Runs");
  const { state, dag } = useSearch({ from: "/runs" });
  const navigate = useNavigate({ from: "/runs" });
  const { from, pages } = usePages("Newest", "Older");
  const known = STATES.find((one) => one === state);
  const runs = useQuery(runsQuery({ ...(known ? { state: known } : {}), ...(dag ? { dag_id: dag } : {}), ...from, limit: PAGE }));
  return (
    <div className="page">
      <div className="head">
        <h1>Runs</h1>
        <select
          aria-label="State of the runs"
          value={known ?? ""}
          onChange={(event) => void navigate({ search: (before) => ({ ...before, state: event.target.value || undefined, cursor: undefined }), replace: true })}
        >
          <option value="">in any state</option>
          {STATES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        {dag && (
          <Link to="/runs" search={{ state }} className="tag" aria-label={`Of the DAG ${dag} alone; show all`}>
            {dag} ×
          </Link>
        )}
      </div>
      <Found of={runs}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <table className="list">
                <thead>
                  <tr>
                    <th>State</th>
                    <th>DAG</th>
                    <th>Run</th>
                    <th>Began</th>
                    <th className="right">Took</th>
                    <th>Why</th>
                  </tr>
                </thead>
                <tbody>
                  {page.items.map((run) => (
                    <tr key={`${run.dag_id}/${run.run_id}`}>
                      <td>
                        <StateName state={run.state} />
                      </td>
                      <td>
                        <Link to="/dags/$dagId" params={{ dagId: run.dag_id }}>
                          {run.dag_id}
                        </Link>
                      </td>
                      <td>
                        <Link to="/dags/$dagId/runs/$runId" params={{ dagId: run.dag_id, runId: run.run_id }}>
                          {run.run_id}
                        </Link>
                        {run.note && <p className="quiet ellipsis">{run.note}</p>}
                      </td>
                      <td data-label="Began">
                        <Time at={run.started_at ?? run.created_at} />
                      </td>
                      <td className="right" data-label="Took">
                        <Took seconds={run.elapsed_s} running={run.state === "running"} />
                      </td>
                      <td className="wide">
                        <span className="why-line">{firstLine(run.reason)}</span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {pages(page.next)}
            </>
          ) : (
            <Empty title={known || dag ? "No run is like that." : "Nothing has run yet."}>
              {known || dag ? <Link to="/runs" search={{}}>Show all runs</Link> : <Link to="/dags">Trigger a DAG</Link>}
            </Empty>
          )
        }
      </Found>
    </div>
  );
}
