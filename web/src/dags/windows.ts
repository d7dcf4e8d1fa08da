// The runs of a grid come in windows, each by itself: only what is looked at is asked for.
import type { Schemas } from "../api/client";
import { SEVERITY } from "../parts/states";

export type GridAnswer = Schemas["Grid"];
export type GridRun = Schemas["GridRun"];
export const WINDOW = 50; // runs of one answer

export interface Column {
  run: GridRun;
  states: Map<string, string[]>; // by task: those that its instances are in, the worst first
}

/** Which windows have the columns `first` to `last`, of which column `total - 1` is the newest run. The first window is always one. */
export function windowsOf(first: number, last: number, total: number): number[] {
  const from = Math.floor(Math.max(0, total - 1 - last) / WINDOW);
  const to = Math.floor(Math.max(0, total - 1 - first) / WINDOW);
  return [...new Set([0, ...Array.from({ length: to - from + 1 }, (_, n) => from + n)])];
}

/** Of a window: its runs, the newest first. */
export function columnsOf(grid: GridAnswer): Column[] {
  return grid.runs.map((run) => {
    const states = new Map<string, string[]>();
    const bySeverity = Object.entries(run.states).sort(([a], [b]) => SEVERITY.indexOf(a) - SEVERITY.indexOf(b));
    for (const [state, places] of bySeverity)
      for (const place of places ?? []) {
        const task = grid.tasks[place]!;
        const known = states.get(task);
        if (known) known.push(state);
        else states.set(task, [state]);
      }
    return { run, states };
  });
}

/** The tasks of several windows, in the order of the newest version, and then those that only older ones have. */
export const tasksOf = (grids: GridAnswer[]) => [...new Set(grids.flatMap((grid) => grid.tasks))];
