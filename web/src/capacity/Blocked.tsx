import type { Schemas } from "../api/client";
import { Empty, Meter } from "../parts/parts";
import { counted } from "../parts/words";

// As the command line names them.
const LIMITS: Record<string, string> = {
  pool: "pool",
  executor: "executor",
  dag_task: "max_active_tis_per_dag of",
  dag_runs: "max_active_runs of",
  run: "max_active_tasks of",
  run_task: "max_active_tis_per_dagrun of",
};

export const limitWord = (limit: string) => LIMITS[limit] ?? limit.replaceAll("_", " ");

/** What ready tasks wait for, the limit that blocks the most first. */
export function Blocked({ plan }: { plan: Schemas["Plan"] }) {
  const blocked = [...plan.blocked].sort((a, b) => b.tasks - a.tasks);
  if (!blocked.length) return <Empty title="No task waits for its turn." />;
  return (
    <table className="list">
      <thead>
        <tr>
          <th>Waits for</th>
          <th className="meter-cell">Taken</th>
          <th className="right">Tasks</th>
        </tr>
      </thead>
      <tbody>
        {blocked.map((one, at) => (
          <tr key={at}>
            <td>
              {one.by ? (
                <>
                  {limitWord(one.by.limit)} <strong>{one.by.name}</strong>
                  {one.kept && <span className="quiet">, which keeps its room for a bigger task</span>}
                </>
              ) : (
                (one.closed ?? (one.paused ? "a DAG that is paused" : "the next round of a scheduler"))
              )}
            </td>
            <td className="meter-cell">
              {one.by && (
                <span className="metered">
                  <Meter used={one.by.used} of={one.by.capacity} label={`${limitWord(one.by.limit)} ${one.by.name}`} />
                  <span className="number">
                    {one.by.used} of {one.by.capacity}
                  </span>
                </span>
              )}
            </td>
            <td className="right number">{counted(one.tasks, "task")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
