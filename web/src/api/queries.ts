// What pages read: one function a question. How often a question is asked again stands with it, for when nothing is told (live.ts).
import { keepPreviousData, queryOptions, type QueryClient } from "@tanstack/react-query";
import { WINDOW } from "../dags/windows";
import type { TOKEN_STATES } from "../users/tokens";
import { ask, type Schemas } from "./client";
import { every, instancesSince, runsSince } from "./live";

/** Where a page of a list begins, and how long it is. */
interface Page {
  cursor?: string;
  limit: number;
}

const LIVE_MS = 2_000; // what is looked at while it changes
const CALM_MS = 5_000; // what changes as a whole

/** By whom people log in beside passwords. */
export const providerQuery = queryOptions({
  queryKey: ["provider"],
  queryFn: ({ signal }) => ask("get", "/api/v1/identity", { signal }),
  staleTime: Infinity,
});

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: ({ signal }) => ask("get", "/api/v1/session", { signal }),
  retry: false,
  staleTime: 60_000,
});

export const sessionsQuery = (page: Page) =>
  queryOptions({
    queryKey: ["sessions", page],
    queryFn: ({ signal }) => ask("get", "/api/v1/sessions", { query: page, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const usersQuery = (page: Page) =>
  queryOptions({
    queryKey: ["users", page],
    queryFn: ({ signal }) => ask("get", "/api/v1/users", { query: page, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const tokensQuery = (wanted: { state?: (typeof TOKEN_STATES)[number] } & Page) =>
  queryOptions({
    queryKey: ["tokens", wanted],
    queryFn: ({ signal }) => ask("get", "/api/v1/tokens", { query: wanted, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const statusQuery = queryOptions({
  queryKey: ["status"],
  queryFn: ({ signal }) => ask("get", "/api/v1/status", { signal }),
  refetchInterval: every(CALM_MS),
});

export const quarantineQuery = (page: Page) =>
  queryOptions({
    queryKey: ["quarantine", page],
    queryFn: ({ signal }) => ask("get", "/api/v1/quarantine", { query: page, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const planQuery = (limit: number) =>
  queryOptions({
    queryKey: ["plan", limit],
    queryFn: ({ signal }) => ask("get", "/api/v1/plan", { query: { limit }, signal }),
    refetchInterval: every(CALM_MS),
  });

/** What would follow if the pool had these slots. */
export const resizedQuery = (pool: string, slots: number) =>
  queryOptions({
    queryKey: ["plan", "resized", pool, slots],
    queryFn: ({ signal }) => ask("get", "/api/v1/plan", { query: { limit: 5, pool, slots }, signal }),
    placeholderData: keepPreviousData,
  });

export const parseErrorsQuery = queryOptions({
  queryKey: ["parse-errors"],
  queryFn: ({ signal }) => ask("get", "/api/v1/parse-errors", { query: { limit: 20 }, signal }),
  refetchInterval: every(CALM_MS * 2),
});

export const dagsQuery = (search: string, page: Page) =>
  queryOptions({
    queryKey: ["dags", search, page],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags", { query: { recent: 24, ...page, ...(search ? { search } : {}) }, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const dagQuery = (dagId: string) =>
  queryOptions({
    queryKey: ["dag", dagId],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}", { names: { dag_id: dagId }, signal }),
    refetchInterval: every(CALM_MS),
  });

/** Runs of a DAG, from the `offset` newest on. */
export const gridQuery = (dagId: string, offset: number) =>
  queryOptions({
    queryKey: ["grid", dagId, offset],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/grid", { names: { dag_id: dagId }, query: { limit: WINDOW, offset }, signal }),
    refetchInterval: every(LIVE_MS),
  });

export const codeQuery = (dagId: string, version: number) =>
  queryOptions({
    queryKey: ["code", dagId, version],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/code", { names: { dag_id: dagId }, query: { version }, signal }),
  });

export const versionsQuery = (dagId: string, page: Page) =>
  queryOptions({
    queryKey: ["versions", dagId, page],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/versions", { names: { dag_id: dagId }, query: page, signal }),
    placeholderData: keepPreviousData,
  });

type RunState = Schemas["RunState"];

export const runsQuery = (wanted: { dag_id?: string; state?: RunState } & Page) =>
  queryOptions({
    queryKey: ["runs", wanted],
    queryFn: async ({ signal }) => {
      const asked = performance.now();
      const page = await ask("get", "/api/v1/runs", { query: wanted, signal });
      return { ...page, items: runsSince(page.items, asked) };
    },
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

/** Runs with this name, of whatever DAG. */
export const namedRunsQuery = (name: string) =>
  queryOptions({
    queryKey: ["named-runs", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/runs/{run_id}", { names: { run_id: name }, query: {}, signal }),
    staleTime: 10_000,
  });

export const runQuery = (dagId: string, runId: string) =>
  queryOptions({
    queryKey: ["run", dagId, runId],
    queryFn: async ({ signal }) => {
      const asked = performance.now();
      const run = await ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}", { names: { dag_id: dagId, run_id: runId }, signal });
      return runsSince([run], asked)[0]!;
    },
    refetchInterval: every(LIVE_MS),
  });

/** How the instances of each task of a run stand. */
export const taskCountsQuery = (dagId: string, runId: string) =>
  queryOptions({
    queryKey: ["task-counts", dagId, runId],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/task-counts", { names: { dag_id: dagId, run_id: runId }, signal }),
    refetchInterval: every(LIVE_MS),
    placeholderData: keepPreviousData,
  });

export const tasksQuery = (dagId: string, runId: string, wanted: { task_id?: string } & Page) =>
  queryOptions({
    queryKey: ["tasks", dagId, runId, wanted],
    queryFn: async ({ signal }) => {
      const asked = performance.now();
      const page = await ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks", { names: { dag_id: dagId, run_id: runId }, query: wanted, signal });
      return { ...page, items: instancesSince(dagId, runId, page.items, asked) };
    },
    refetchInterval: every(LIVE_MS),
    placeholderData: keepPreviousData,
  });

/** The first task that failed in a run that has ended: what is so stays so, until the run is changed. */
export const causeQuery = (dagId: string, runId: string, endedAt: string | null) =>
  queryOptions({
    queryKey: ["cause", dagId, runId, endedAt],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks", { names: { dag_id: dagId, run_id: runId }, query: { state: "failed", limit: 1 }, signal }),
    staleTime: Infinity,
  });

export interface InstanceName {
  dagId: string;
  runId: string;
  taskId: string;
  map: number;
}
export const namesOf = ({ dagId, runId, taskId }: InstanceName) => ({ dag_id: dagId, run_id: runId, task_id: taskId });

export const whyQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["why", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/why", { names: namesOf(of), query: { map_index: of.map }, signal }),
    refetchInterval: every(LIVE_MS),
  });

export const approvalQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["approval", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/approval", { names: namesOf(of), query: { map_index: of.map }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const approvalsQuery = (limit: number) =>
  queryOptions({
    queryKey: ["approvals", limit],
    queryFn: ({ signal }) => ask("get", "/api/v1/approvals", { query: { limit }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const taskEventsQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["task-events", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/events", {
        names: namesOf(of),
        query: { map_index: of.map, limit: 500 },
        signal,
      }),
    refetchInterval: every(LIVE_MS),
  });

export const triesQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["tries", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/tries", { names: namesOf(of), query: { map_index: of.map }, signal }),
    refetchInterval: every(LIVE_MS),
  });

/** Where the Spark UI of a running task is; refused while there is none. */
export const sparkUiQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["spark-ui", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark-ui", { names: namesOf(of), query: { map_index: of.map }, signal }),
    retry: false,
    refetchInterval: ({ state }) => (state.data ? false : CALM_MS),
  });

/** What the stages of a try on Spark take; `active`: it may still tell more. */
export const sparkStagesQuery = (of: InstanceName, tryNumber: number | undefined, active: boolean) =>
  queryOptions({
    queryKey: ["spark-stages", of, tryNumber],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/spark", {
        names: namesOf(of),
        query: { map_index: of.map, ...(tryNumber ? { try_number: tryNumber } : {}) },
        signal,
      }),
    retry: false,
    refetchInterval: active ? LIVE_MS : false,
  });

export const linksQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["links", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/links", { names: namesOf(of), query: { map_index: of.map }, signal }),
  });

export const renderedQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["rendered", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/rendered", { names: namesOf(of), query: { map_index: of.map }, signal }),
  });

export const xcomsQuery = (of: InstanceName) =>
  queryOptions({
    queryKey: ["xcoms", of],
    queryFn: ({ signal }) =>
      ask("get", "/api/v1/dags/{dag_id}/runs/{run_id}/xcoms", { names: namesOf(of), query: { task_id: of.taskId, limit: 200 }, signal }),
  });

export const poolsQuery = queryOptions({
  queryKey: ["pools"],
  queryFn: ({ signal }) => ask("get", "/api/v1/pools", { signal }),
  refetchInterval: every(LIVE_MS),
});

export const executorsQuery = queryOptions({
  queryKey: ["executors"],
  queryFn: ({ signal }) => ask("get", "/api/v1/executors", { signal }),
  refetchInterval: every(LIVE_MS),
});

export const holdersQuery = (kind: "pool" | "queue", name: string) =>
  queryOptions({
    queryKey: ["holders", kind, name],
    queryFn: ({ signal }) => ask("get", "/api/v1/service-states/{kind}/{name}", { names: { kind, name }, signal }),
    refetchInterval: every(LIVE_MS),
  });

const LOOKS = 200; // of an autoscaler, for its chart

export const fleetsQuery = queryOptions({
  queryKey: ["fleets"],
  queryFn: ({ signal }) => ask("get", "/api/v1/fleets", { signal }),
  refetchInterval: every(CALM_MS),
});

export const fleetQuery = (name: string) =>
  queryOptions({
    queryKey: ["fleet", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/fleets/{name}", { names: { name }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const fleetLooksQuery = (name: string) =>
  queryOptions({
    queryKey: ["fleet-looks", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/fleets/{name}/looks", { names: { name }, query: { limit: LOOKS }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const fleetStepsQuery = (name: string) =>
  queryOptions({
    queryKey: ["fleet-steps", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/fleets/{name}/steps", { names: { name }, query: { limit: 20 }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const eventsQuery = (wanted: { actor?: string; action?: string; object?: string } & Page) =>
  queryOptions({
    queryKey: ["events", wanted],
    queryFn: ({ signal }) => ask("get", "/api/v1/events", { query: wanted, signal }),
    refetchInterval: CALM_MS,
    placeholderData: keepPreviousData,
  });

export const backfillsQuery = (wanted: { dag_id?: string } & Page) =>
  queryOptions({
    queryKey: ["backfills", wanted],
    queryFn: ({ signal }) => ask("get", "/api/v1/backfills", { query: wanted, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const notificationRulesQuery = queryOptions({
  queryKey: ["notification-rules"],
  queryFn: ({ signal }) => ask("get", "/api/v1/notification-rules", { signal }),
  refetchInterval: every(CALM_MS),
});

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => ask("get", "/api/v1/settings", { signal }),
});

export const settingHistoryQuery = (name: string) =>
  queryOptions({
    queryKey: ["settings", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/settings/{name}/history", { names: { name }, query: { limit: 50 }, signal }),
  });

export const connectionsQuery = queryOptions({
  queryKey: ["connections"],
  queryFn: ({ signal }) => ask("get", "/api/v1/connections", { query: { limit: 1000 }, signal }),
});

export const variablesQuery = queryOptions({
  queryKey: ["variables"],
  queryFn: ({ signal }) => ask("get", "/api/v1/variables", { query: { limit: 1000 }, signal }),
});

export const assetsQuery = (page: Page) =>
  queryOptions({
    queryKey: ["assets", page],
    queryFn: ({ signal }) => ask("get", "/api/v1/assets", { query: page, signal }),
    refetchInterval: every(CALM_MS),
    placeholderData: keepPreviousData,
  });

export const assetQuery = (name: string) =>
  queryOptions({
    queryKey: ["assets", name],
    queryFn: ({ signal }) => ask("get", "/api/v1/assets", { query: { name }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const assetEventsQuery = (asset: string) =>
  queryOptions({
    queryKey: ["asset-events", asset],
    queryFn: ({ signal }) => ask("get", "/api/v1/assets/events", { query: { asset, limit: 100 }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const partitionsQuery = (asset: string) =>
  queryOptions({
    queryKey: ["partitions", asset],
    queryFn: ({ signal }) => ask("get", "/api/v1/assets/partitions", { query: { asset, limit: 400 }, signal }),
    refetchInterval: every(CALM_MS),
  });

export const insightsQuery = queryOptions({
  queryKey: ["insights"],
  queryFn: ({ signal }) => ask("get", "/api/v1/insights", { signal }),
  staleTime: 60_000,
});

export const diffQuery = (dagId: string, before: number, after: number) =>
  queryOptions({
    queryKey: ["diff", dagId, before, after],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/diff", { names: { dag_id: dagId }, query: { before, after }, signal }),
  });

export const calendarQuery = (dagId: string) =>
  queryOptions({
    queryKey: ["calendar", dagId],
    queryFn: ({ signal }) => ask("get", "/api/v1/dags/{dag_id}/calendar", { names: { dag_id: dagId }, signal }),
    refetchInterval: every(CALM_MS),
  });

/** After something was changed, everything that is on the page is asked for anew. */
export const refresh = (client: QueryClient) => client.invalidateQueries();
