import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import type { Schemas } from "../api/client";
import { gridQuery } from "../api/queries";
import { Command, Empty, Found, MoreButton } from "../parts/parts";
import { SEVERITY, StateMark, stateWord } from "../parts/states";
import { duration, quoted } from "../parts/words";

const FIRST = 25;
const MORE = 25;
const MOST = 100; // runs of one answer
const CELL = 24; // pixels
const NAMES = 220;
const HEAD = 76;

export function GridTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const [limit, setLimit] = useState(FIRST);
  const grid = useQuery(gridQuery(dagId, limit));
  return (
    <Found of={grid}>
      {(found) =>
        found.runs.length ? (
          <>
            <Cells dagId={dagId} grid={found} />
            <Legend grid={found} />
            <MoreButton more={found.more && limit < MOST} show={() => setLimit(Math.min(MOST, limit + MORE))} />
          </>
        ) : (
          <Empty title="It has not run yet.">
            <p>Trigger it above, or type:</p>
            <Command text={`evenflow run ${quoted(dagId)}`} />
          </Empty>
        )
      }
    </Found>
  );
}

type Grid = Schemas["Grid"];

/** By run and place of the task: the states that its instances are in, the worst first. */
function useStates(grid: Grid): string[][][] {
  return useMemo(
    () =>
      grid.runs.map((run) => {
        const cells: string[][] = grid.tasks.map(() => []);
        const states = Object.entries(run.states).sort(([a], [b]) => SEVERITY.indexOf(a) - SEVERITY.indexOf(b));
        for (const [state, places] of states) for (const place of places ?? []) cells[place]?.push(state);
        return cells;
      }),
    [grid],
  );
}

/** Runs beside each other, the newest at the right, tasks below each other. Only what is seen is drawn, however many there are. */
function Cells({ dagId, grid }: { dagId: string; grid: Grid }) {
  const area = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const runs = useMemo(() => [...grid.runs].reverse(), [grid]);
  const states = useStates(grid);
  const rows = useVirtualizer({ count: grid.tasks.length, getScrollElement: () => area.current, estimateSize: () => CELL, overscan: 10, paddingStart: HEAD });
  const columns = useVirtualizer({
    horizontal: true,
    count: runs.length,
    getScrollElement: () => area.current,
    estimateSize: () => CELL,
    overscan: 10,
    paddingStart: NAMES,
  });
  const [at, setAt] = useState<[number, number] | null>(null); // where the keyboard is: task, run
  const longest = Math.max(...runs.map((run) => run.elapsed_s ?? 0), 0.001);
  const move = (event: React.KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    const by = steps[event.key];
    if (by) {
      event.preventDefault();
      const [task, run] = at ?? [-by[0] * 0, runs.length - 1];
      const next: [number, number] = [
        Math.max(0, Math.min(grid.tasks.length - 1, task + by[0])),
        Math.max(0, Math.min(runs.length - 1, run + by[1])),
      ];
      setAt(next);
      rows.scrollToIndex(next[0]);
      columns.scrollToIndex(next[1]);
    } else if (event.key === "Enter" && at && event.target === area.current) {
      const [task, run] = at;
      void navigate({ to: "/dags/$dagId/runs/$runId/tasks/$taskId", params: { dagId, runId: runs[run]!.run_id, taskId: grid.tasks[task]! } });
    }
  };
  const told = at ? `${grid.tasks[at[0]]}, ${runs[at[1]]?.run_id}: ${stateWord(states[runs.length - 1 - at[1]]?.[at[0]]?.[0] ?? "none")}` : "";
  return (
    <div
      className="grid"
      ref={area}
      tabIndex={0}
      role="application"
      aria-roledescription="grid of runs and tasks"
      aria-label="How the tasks of the last runs stand. Arrows move, Enter opens."
      onKeyDown={move}
    >
      <p className="visually-hidden" aria-live="polite">{told}</p>
      <div className="grid-all" style={{ height: rows.getTotalSize(), width: columns.getTotalSize() }}>
        <div className="grid-head" style={{ height: HEAD, width: columns.getTotalSize() }}>
          <div className="grid-corner" style={{ width: NAMES }}>
            <span className="quiet">{duration(longest)}</span>
          </div>
          {columns.getVirtualItems().map((column) => {
            const run = runs[column.index]!;
            return (
              <Link
                key={run.run_id}
                to="/dags/$dagId/runs/$runId"
                params={{ dagId, runId: run.run_id }}
                preload={false}
                tabIndex={-1}
                className="grid-run"
                style={{ left: column.start, width: CELL, height: HEAD }}
                title={`${run.run_id}: ${stateWord(run.state)}${run.elapsed_s === null ? "" : `, ${duration(run.elapsed_s)}`}`}
                aria-label={`run ${run.run_id}: ${stateWord(run.state)}`}
              >
                <span className={`bar s-${run.state}`} style={{ height: `${Math.max(6, 46 * ((run.elapsed_s ?? 0) / longest))}px` }} />
                <StateMark state={run.state} size={14} />
              </Link>
            );
          })}
        </div>
        {rows.getVirtualItems().map((row) => {
          const task = grid.tasks[row.index]!;
          return (
            <div key={task} className="grid-row" style={{ top: row.start, height: CELL, width: columns.getTotalSize() }}>
              <span className="grid-name" style={{ width: NAMES }} title={task}>
                {task}
              </span>
              {columns.getVirtualItems().map((column) => {
                const run = runs[column.index]!;
                const found = states[runs.length - 1 - column.index]?.[row.index] ?? [];
                if (!found.length) return <span key={run.run_id} className="grid-cell" style={{ left: column.start, width: CELL }}>{run.state === "queued" ? <StateMark state="none" /> : null}</span>;
                const isAt = at?.[0] === row.index && at[1] === column.index;
                return (
                  <Link
                    key={run.run_id}
                    to="/dags/$dagId/runs/$runId/tasks/$taskId"
                    params={{ dagId, runId: run.run_id, taskId: task }}
                    preload={false}
                    tabIndex={-1}
                    className={isAt ? "grid-cell at" : "grid-cell"}
                    style={{ left: column.start, width: CELL }}
                    title={`${task}, ${run.run_id}: ${found.map(stateWord).join(", ")}`}
                    aria-label={`${task}, ${run.run_id}: ${found.map(stateWord).join(", ")}`}
                  >
                    <StateMark state={found[0]!} size={18} />
                  </Link>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Legend({ grid }: { grid: Grid }) {
  const seen = SEVERITY.filter((state) => grid.runs.some((run) => (run.states as Record<string, number[]>)[state]?.length));
  return (
    <p className="legend">
      {seen.map((state) => (
        <span key={state} className="state">
          <StateMark state={state} size={14} />
          {stateWord(state)}
        </span>
      ))}
    </p>
  );
}
