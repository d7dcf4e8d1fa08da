// What moves is told by the API as it happens (server-sent events): states are put into what is shown, and what else may have changed is
// asked for again. While the stream is there, pages ask rarely; without it they ask every few seconds, as before.
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { address, type Schemas } from "./client";
import { listen } from "./stream";

const SELDOM_MS = 15_000; // what is told of nothing, such as a server that lies still, is seen after so long

type News = Schemas["LiveNews"];
type Topic = { dagId?: string; runId?: string };

let open = false;
const listeners = new Set<() => void>();

function become(next: boolean) {
  if (open === next) return;
  open = next;
  for (const listener of listeners) listener();
}

/** How often a question is asked again: seldom while what changes is told. */
export const every = (ms: number) => () => (open ? Math.max(ms, SELDOM_MS) : ms);

export function useIsLive(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => open,
  );
}

/** The page that is looked at hears of what it is about, once it is known who looks. */
export function useLive({ dagId, runId }: Topic, known: boolean) {
  const client = useQueryClient();
  useEffect(() => {
    if (!known) return;
    const again = new Again(client);
    const stop = listen({
      at: () => address("/api/v1/live", {}, { dag_id: dagId, run_id: runId }),
      heard: {
        news: (data) => {
          const news = JSON.parse(data) as News;
          patch(client, news);
          again.about(news);
        },
        behind: () => again.all(),
      },
      opened: () => {
        become(true);
        again.all(); // what moved before it was there
      },
      lost: () => {
        become(false);
        again.all(); // which finds out whether it is the stream alone
      },
      closed: () => become(false),
    });
    return () => {
      stop();
      again.stop();
    };
  }, [client, dagId, runId, known]);
}

// What the stream of capacity tells is not asked for again when something moves.
const OF_CAPACITY = ["pools", "executors", "plan", "status"];
let capacityIsTold = false;

/** Pools, executors, queues and the plan are told while they are looked at. `lanes`: how many the page has asked for. */
export function useLiveCapacity(lanes: number) {
  const client = useQueryClient();
  useEffect(() => {
    const ended = () => {
      capacityIsTold = false;
    };
    return listen({
      at: () => address("/api/v1/capacity/live"),
      heard: {
        capacity: (data) => {
          capacityIsTold = true;
          show(client, JSON.parse(data) as Schemas["Capacity"], lanes);
        },
      },
      lost: ended,
      closed: ended,
    });
  }, [client, lanes]);
}

function show(client: QueryClient, { pools, executors, queues, push_executors, plan }: Schemas["Capacity"], lanes: number) {
  client.setQueryData<Schemas["Page_Pool_"]>(["pools"], (kept) => kept && { ...kept, items: pools });
  client.setQueryData<Schemas["Page_Executor_"]>(["executors"], (kept) => kept && { ...kept, items: executors });
  client.setQueryData<Schemas["Status"]>(["status"], (kept) => kept && { ...kept, queues, executors: push_executors });
  client.setQueryData<Schemas["Plan"]>(["plan", lanes], (kept) => kept && plan);
}

// What was told lately, by run and by instance: an answer to a question that was asked before does not take it back.
const KEPT_MS = 30_000;
const told = new Map<string, { at: number; now: { state: Run["state"] } | Pick<Instance, "state" | "try_number"> }>();
type Run = Schemas["RunSummary"];
type Instance = Schemas["InstanceSummary"];

function since<T extends object>(one: T, key: string, asked: number): T {
  const found = told.get(key);
  return found && found.at > asked ? { ...one, ...found.now } : one;
}

/** Runs with what was told of them after they were asked for (performance.now()). */
export const runsSince = <T extends { dag_id: string; run_id: string }>(runs: T[], asked: number) =>
  runs.map((run) => since(run, `${run.dag_id}/${run.run_id}`, asked));

export const instancesSince = (dagId: string, runId: string, tasks: Instance[], asked: number) =>
  tasks.map((task) => since(task, `${dagId}/${runId}/${task.task_id} ${task.map_index}`, asked));

/** States are shown at once, wherever the cache has the run or the instance. */
function patch(client: QueryClient, news: News) {
  const at = performance.now();
  for (const [key, one] of told) if (one.at < at - KEPT_MS) told.delete(key);
  for (const run of news.runs) {
    const name = `${run.dag_id}/${run.run_id}`;
    told.set(name, { at, now: { state: run.state } });
    for (const task of run.tasks) told.set(`${name}/${task.task_id} ${task.map_index}`, { at, now: { state: task.state, try_number: task.try_number } });
    client.setQueryData<Schemas["RunDetail"]>(["run", run.dag_id, run.run_id], (kept) => kept && { ...kept, state: run.state });
    if (run.tasks.length)
      client.setQueriesData<Schemas["Page_InstanceSummary_"]>({ queryKey: ["tasks", run.dag_id, run.run_id] }, (kept) =>
        kept && { ...kept, items: instancesSince(run.dag_id, run.run_id, kept.items, at - 1) },
      );
  }
  client.setQueriesData<Schemas["Page_RunSummary_"]>({ queryKey: ["runs"] }, (kept) => kept && { ...kept, items: runsSince(kept.items, at - 1) });
}

/** Asks again what may have changed: at once, and under a stream of news each question as seldom as that says. */
class Again {
  private readonly waiting = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;
  private quietMs = 0;

  constructor(private readonly client: QueryClient) {}

  all() {
    this.ask("");
  }

  about(news: News) {
    this.quietMs = news.quiet_s * 1000;
    if (news.more) this.ask("");
    else for (const run of news.runs) this.ask(`${run.dag_id}/${run.run_id}`);
  }

  stop() {
    clearTimeout(this.timer);
  }

  private ask(what: string) {
    this.waiting.add(what);
    if (this.timer !== undefined) return;
    this.timer = setTimeout(() => this.flush(), Math.max(0, this.last + this.quietMs - Date.now()));
  }

  private flush() {
    this.timer = undefined;
    this.last = Date.now();
    const of = [...this.waiting].map((what) => what.split("/"));
    this.waiting.clear();
    void this.client.invalidateQueries(
      { predicate: ({ queryKey }) => of.some(([dagId, runId]) => !dagId || concerns(queryKey, dagId, runId ?? "")) },
      { cancelRefetch: false },
    );
  }
}

// Questions about one DAG, run or instance have its names in their keys; those about the whole system change with every move.
const OF_A_RUN = new Set(["run", "tasks", "task-counts", "cause", "run-events"]);
const OF_AN_INSTANCE = new Set(["why", "task-events", "tries", "rendered", "xcoms"]);
const OF_A_DAG = new Set(["dag", "grid", "calendar"]);
const UNMOVED = new Set(["session", "code", "versions", "diff", "insights", "parse-errors", "settings", "connections", "variables", "events"]);

function concerns(key: readonly unknown[], dagId: string, runId: string): boolean {
  const kind = String(key[0]);
  if (UNMOVED.has(kind) || (capacityIsTold && OF_CAPACITY.includes(kind))) return false;
  if (OF_A_RUN.has(kind)) return key[1] === dagId && key[2] === runId;
  if (OF_A_DAG.has(kind)) return key[1] === dagId;
  if (OF_AN_INSTANCE.has(kind)) {
    const of = key[1] as { dagId: string; runId: string };
    return of.dagId === dagId && of.runId === runId;
  }
  return true;
}
