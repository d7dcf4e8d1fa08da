import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useRouter } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import { gridQuery } from "../api/queries";
import { Command, Empty, Found } from "../parts/parts";
import { SEVERITY, StateMark, stateWord } from "../parts/states";
import { duration, quoted } from "../parts/words";
import { columnsOf, tasksOf, WINDOW, windowsOf, type Column, type GridAnswer } from "./windows";

const CELL = 24; // pixels
const BLOCK = 10; // columns that are drawn together
const NAMES = 220;
const NARROW_NAMES = 120; // on a phone
const HEAD = 76;
const REST_MS = 120; // without scrolling

export function GridTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const newest = useQuery(gridQuery(dagId, 0));
  return (
    <Found of={newest}>
      {(found) =>
        found.runs.length ? (
          <Cells key={dagId} dagId={dagId} newest={found} />
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

const ofRun = (dagId: string, runId: string) => `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}`;
const ofTask = (dagId: string, runId: string, taskId: string) => `${ofRun(dagId, runId)}/tasks/${encodeURIComponent(taskId)}`;

/**
 * Runs beside each other, the newest at the right, tasks below each other. Only what is seen is drawn and asked for, however many there
 * are. Cells are drawn in blocks, which stay as they are while one scrolls.
 */
function Cells({ dagId, newest }: { dagId: string; newest: GridAnswer }) {
  const area = useRef<HTMLDivElement>(null);
  const router = useRouter();
  const navigate = useNavigate();
  const total = newest.total;
  const names = window.innerWidth < 820 ? NARROW_NAMES : NAMES;
  const blocks = useVirtualizer({
    horizontal: true,
    count: Math.ceil(total / BLOCK),
    getScrollElement: () => area.current,
    estimateSize: () => BLOCK * CELL,
    overscan: 1,
    paddingStart: names,
    isScrollingResetDelay: REST_MS,
    initialOffset: () => total * CELL,
  });
  const seen = blocks.getVirtualItems();
  const wanted = windowsOf((seen[0]?.index ?? 0) * BLOCK, ((seen.at(-1)?.index ?? 0) + 1) * BLOCK - 1, total);
  // What flies by is not asked for: where the reader rests is.
  const answers = useQueries({ queries: wanted.map((number) => ({ ...gridQuery(dagId, number * WINDOW), enabled: number === 0 || !blocks.isScrolling })) });
  const loaded = wanted.flatMap((number, at) => (answers[at]?.data ? [{ number, grid: answers[at].data }] : []));
  const known = useKnown(loaded);
  const tasks = useMemo(() => tasksOf(loaded.map(({ grid }) => grid)), [known]);
  const rows = useVirtualizer({ count: tasks.length, getScrollElement: () => area.current, estimateSize: () => CELL, overscan: 8, paddingStart: HEAD });
  const [at, setAt] = useState<[number, number] | null>(null); // where the keyboard is: task, column
  const column = (index: number): Column | undefined => {
    const newer = total - 1 - index;
    return known.get(Math.floor(newer / WINDOW))?.[newer % WINDOW];
  };
  const longest = Math.max(0.001, ...[...known.values()].flatMap((columns) => columns.map(({ run }) => run.elapsed_s ?? 0)));
  const width = names + total * CELL;
  // It opens at the newest runs.
  useLayoutEffect(() => {
    if (area.current) area.current.scrollLeft = area.current.scrollWidth;
  }, []);
  const show = ([task, run]: [number, number]) => {
    const box = area.current!;
    const [left, top] = [names + run * CELL, HEAD + task * CELL];
    if (left - names < box.scrollLeft) box.scrollLeft = left - names;
    else if (left + CELL > box.scrollLeft + box.clientWidth) box.scrollLeft = left + CELL - box.clientWidth;
    if (top - HEAD < box.scrollTop) box.scrollTop = top - HEAD;
    else if (top + CELL > box.scrollTop + box.clientHeight) box.scrollTop = top + CELL - box.clientHeight;
  };
  const move = (event: React.KeyboardEvent) => {
    const page = Math.max(1, Math.floor((area.current!.clientHeight - HEAD) / CELL) - 1);
    const steps: Record<string, [number, number]> = {
      ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
      PageDown: [page, 0], PageUp: [-page, 0], Home: [0, -total], End: [0, total],
    };
    const by = steps[event.key];
    if (by) {
      event.preventDefault();
      const [task, run] = at ?? [0, total - 1];
      const next: [number, number] = [Math.max(0, Math.min(tasks.length - 1, task + by[0])), Math.max(0, Math.min(total - 1, run + by[1]))];
      setAt(next);
      show(next);
    } else if (event.key === "Enter" && at && event.target === area.current) {
      const [task, found] = [tasks[at[0]]!, column(at[1])];
      if (found) void navigate({ to: "/dags/$dagId/runs/$runId/tasks/$taskId", params: { dagId, runId: found.run.run_id, taskId: task } });
    }
  };
  // One handler for thousands of links: what a link of the router does costs more than the cell.
  const follow = (event: React.MouseEvent) => {
    const link = (event.target as Element).closest("a");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    router.history.push(link.getAttribute("href")!);
  };
  const atColumn = at && column(at[1]);
  const told = atColumn ? `${tasks[at[0]]}, ${atColumn.run.run_id}: ${stateWord(atColumn.states.get(tasks[at[0]]!)?.[0] ?? "none")}` : "";
  return (
    <>
      <div
        className="grid"
        ref={area}
        tabIndex={0}
        role="application"
        aria-roledescription="grid of runs and tasks"
        aria-label="How the tasks of the runs stand. Arrows move, Enter opens."
        onKeyDown={move}
        onClick={follow}
      >
        <p className="visually-hidden" aria-live="polite">{told}</p>
        <div className="grid-all" style={{ height: rows.getTotalSize(), width }}>
          <div className="grid-head" style={{ height: HEAD, width }}>
            <div className="grid-corner" style={{ width: names }}>
              <span className="quiet">{duration(longest)}</span>
            </div>
            {seen.map((block) => (
              <HeadBlock key={block.index} dagId={dagId} left={block.start} longest={longest} columns={columnsOfBlock(block.index, total, column)} />
            ))}
          </div>
          {rows.getVirtualItems().map((row) => {
            const task = tasks[row.index]!;
            return (
              <div key={task} className="grid-row" style={{ top: row.start, height: CELL, width }}>
                <span className="grid-name" style={{ width: names }} title={task}>
                  {task}
                </span>
                {seen.map((block) => {
                  const marked = at && at[0] === row.index && Math.floor(at[1] / BLOCK) === block.index ? at[1] % BLOCK : -1;
                  return <RowBlock key={block.index} dagId={dagId} task={task} left={block.start} at={marked} columns={columnsOfBlock(block.index, total, column)} />;
                })}
              </div>
            );
          })}
        </div>
      </div>
      <Legend known={known} />
      {newest.total > WINDOW && <p className="quiet number">{newest.total.toLocaleString("en-US")} runs: scroll to the left for older ones.</p>}
    </>
  );
}

/** By number of the window its columns. It is the same object until an answer has changed. */
function useKnown(loaded: { number: number; grid: GridAnswer }[]): Map<number, Column[]> {
  const made = useRef(new WeakMap<GridAnswer, Column[]>());
  return useMemo(
    () =>
      new Map(
        loaded.map(({ number, grid }) => {
          let columns = made.current.get(grid);
          if (!columns) made.current.set(grid, (columns = columnsOf(grid)));
          return [number, columns];
        }),
      ),
    loaded.flatMap(({ number, grid }) => [number, grid]).concat(Array<number>(2 * Math.max(0, MOST_LOADED - loaded.length)).fill(-1)),
  );
}
const MOST_LOADED = 12; // windows on one screen: more would be a screen of 600 runs

const columnsOfBlock = (block: number, total: number, column: (index: number) => Column | undefined) =>
  Array.from({ length: Math.min(BLOCK, total - block * BLOCK) }, (_, n) => column(block * BLOCK + n));

interface BlockProps {
  dagId: string;
  left: number;
  columns: (Column | undefined)[];
}

const isSame = <T extends BlockProps>(before: T, after: T) =>
  (Object.keys(after) as (keyof T)[]).every((name) => name === "columns" || before[name] === after[name]) &&
  before.columns.length === after.columns.length &&
  before.columns.every((column, n) => column === after.columns[n]);

const HeadBlock = memo(function HeadBlock({ dagId, left, columns, longest }: BlockProps & { longest: number }) {
  return columns.map((column, n) => {
    if (!column) return <span key={n} className="grid-run coming" style={{ left: left + n * CELL, width: CELL, height: HEAD }} />;
    const { run } = column;
    const told = `${run.run_id}: ${stateWord(run.state)}${run.elapsed_s === null ? "" : `, ${duration(run.elapsed_s)}`}`;
    return (
      <a key={n} href={ofRun(dagId, run.run_id)} tabIndex={-1} className="grid-run" style={{ left: left + n * CELL, width: CELL, height: HEAD }} title={told} aria-label={`run ${told}`}>
        <span className={`bar s-${run.state}`} style={{ height: `${Math.max(6, 46 * ((run.elapsed_s ?? 0) / longest))}px` }} />
        <StateMark state={run.state} size={14} />
      </a>
    );
  });
}, isSame);

const RowBlock = memo(function RowBlock({ dagId, task, left, at, columns }: BlockProps & { task: string; at: number }) {
  return columns.map((column, n) => {
    const place = { left: left + n * CELL, width: CELL };
    const name = n === at ? "grid-cell at" : "grid-cell";
    if (!column) return <span key={n} className={`${name} coming`} style={place} />;
    const found = column.states.get(task);
    if (!found) return <span key={n} className={name} style={place}>{column.run.state === "queued" ? <StateMark state="none" /> : null}</span>;
    const told = `${task}, ${column.run.run_id}: ${found.map(stateWord).join(", ")}`;
    return (
      <a key={n} href={ofTask(dagId, column.run.run_id, task)} tabIndex={-1} className={name} style={place} title={told} aria-label={told}>
        <StateMark state={found[0]!} size={18} />
      </a>
    );
  });
}, isSame);

function Legend({ known }: { known: Map<number, Column[]> }) {
  const seen = useMemo(() => {
    const states = new Set([...known.values()].flatMap((columns) => columns.flatMap(({ run }) => Object.keys(run.states))));
    return SEVERITY.filter((state) => states.has(state));
  }, [known]);
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
