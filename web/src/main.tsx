import "@fontsource-variable/inter/wght.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect, RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Refusal } from "./api/client";
import { sessionQuery } from "./api/queries";
import { Login } from "./app/Login";
import { Shell } from "./app/Shell";
import { show } from "./parts/choices";
import { Empty } from "./parts/parts";
import "./style.css";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      networkMode: "always", // "offline" is what the API says, not what a browser guesses
      staleTime: 1_000,
      retry: (failures, error) => !(error instanceof Refusal && error.status < 500) && failures < 2,
    },
    mutations: { networkMode: "always" },
  },
});
client.getQueryCache().subscribe(({ type, query }) => {
  const error = query.state.error;
  const isOver = type === "updated" && error instanceof Refusal && error.status === 401;
  if (isOver && query.queryKey[0] !== "session") void client.invalidateQueries({ queryKey: sessionQuery.queryKey });
});

const optional = (value: unknown) => (typeof value === "string" && value ? value : undefined);
const root = createRootRoute({
  component: Shell,
  notFoundComponent: () => <Empty title="There is nothing at this address." />,
  validateSearch: (search: Record<string, unknown>): { cursor?: string } => ({ cursor: optional(search.cursor) }),
});
const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: Login,
  validateSearch: (search: Record<string, unknown>): { next?: string } => ({ next: optional(search.next) }),
});
const home = createRoute({ getParentRoute: () => root, path: "/", component: lazyRouteComponent(() => import("./home/Home"), "Home") });
const dags = createRoute({
  getParentRoute: () => root,
  path: "/dags",
  component: lazyRouteComponent(() => import("./dags/Dags"), "Dags"),
  validateSearch: (search: Record<string, unknown>): { search?: string } => ({ search: optional(search.search) }),
});
const dag = createRoute({
  getParentRoute: () => root,
  path: "/dags/$dagId",
  component: lazyRouteComponent(() => import("./dags/Dag"), "Dag"),
  validateSearch: (search: Record<string, unknown>): { trigger?: true } => (search.trigger ? { trigger: true } : {}),
});
const grid = createRoute({ getParentRoute: () => dag, path: "/", component: lazyRouteComponent(() => import("./dags/Grid"), "GridTab") });
const graph = createRoute({
  getParentRoute: () => dag,
  path: "/graph",
  component: lazyRouteComponent(() => import("./dags/Graph"), "GraphTab"),
  validateSearch: (search: Record<string, unknown>): { run?: string; open?: string[]; around?: string } => ({
    run: optional(search.run),
    open: Array.isArray(search.open) ? search.open.map(String) : undefined,
    around: optional(search.around),
  }),
});
const code = createRoute({
  getParentRoute: () => dag,
  path: "/code",
  component: lazyRouteComponent(() => import("./dags/Code"), "CodeTab"),
  validateSearch: (search: Record<string, unknown>): { version?: number } => ({ version: Number(search.version) || undefined }),
});
const versions = createRoute({
  getParentRoute: () => dag,
  path: "/versions",
  component: lazyRouteComponent(() => import("./dags/Versions"), "VersionsTab"),
  validateSearch: (search: Record<string, unknown>): { after?: number; before?: number } => ({
    after: Number(search.after) || undefined,
    before: Number(search.before) || undefined,
  }),
});
const calendar = createRoute({ getParentRoute: () => dag, path: "/calendar", component: lazyRouteComponent(() => import("./dags/Calendar"), "CalendarTab") });
const ofDag = createRoute({ getParentRoute: () => dag, path: "/backfills", component: lazyRouteComponent(() => import("./dags/BackfillsTab"), "BackfillsTab") });
const about = createRoute({ getParentRoute: () => dag, path: "/about", component: lazyRouteComponent(() => import("./dags/About"), "AboutTab") });
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  component: lazyRouteComponent(() => import("./runs/Runs"), "Runs"),
  validateSearch: (search: Record<string, unknown>): { state?: string; dag?: string } => ({
    state: optional(search.state),
    dag: optional(search.dag),
  }),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/dags/$dagId/runs/$runId",
  component: lazyRouteComponent(() => import("./runs/Run"), "Run"),
});
const task = createRoute({
  getParentRoute: () => root,
  path: "/dags/$dagId/runs/$runId/tasks/$taskId",
  component: lazyRouteComponent(() => import("./tasks/Task"), "Task"),
  validateSearch: (search: Record<string, unknown>): { map?: number; try?: number; tab?: string } => ({
    map: search.map === undefined ? undefined : Number(search.map),
    try: Number(search.try) || undefined,
    tab: optional(search.tab),
  }),
});
/** Where a link of an operator of Airflow's leads that asks people. */
const requiredActions = createRoute({
  getParentRoute: () => root,
  path: "/dags/$dagId/runs/$runId/tasks/$taskId/required_actions",
  validateSearch: (search: Record<string, unknown>): { map_index?: number } => ({ map_index: Number(search.map_index ?? -1) }),
  beforeLoad: ({ params, search }) => {
    const map = search.map_index ?? -1;
    throw redirect({ to: "/dags/$dagId/runs/$runId/tasks/$taskId", params, search: map < 0 ? {} : { map }, replace: true });
  },
});
const capacity = createRoute({
  getParentRoute: () => root,
  path: "/capacity",
  component: lazyRouteComponent(() => import("./capacity/Capacity"), "Capacity"),
});

const assets = createRoute({
  getParentRoute: () => root,
  path: "/assets",
  component: lazyRouteComponent(() => import("./assets/Assets"), "Assets"),
  validateSearch: (search: Record<string, unknown>): { asset?: string } => ({ asset: optional(search.asset) }),
});
const backfills = createRoute({ getParentRoute: () => root, path: "/backfills", component: lazyRouteComponent(() => import("./backfills/Backfills"), "Backfills") });
const fleet = createRoute({ getParentRoute: () => root, path: "/fleet", component: lazyRouteComponent(() => import("./fleet/Fleet"), "Fleet") });
const events = createRoute({
  getParentRoute: () => root,
  path: "/events",
  component: lazyRouteComponent(() => import("./events/Events"), "Events"),
  validateSearch: (search: Record<string, unknown>): { actor?: string; action?: string; object?: string } => ({
    actor: optional(search.actor),
    action: optional(search.action),
    object: optional(search.object),
  }),
});
const quarantine = createRoute({ getParentRoute: () => root, path: "/quarantine", component: lazyRouteComponent(() => import("./quarantine/Quarantine"), "Quarantine") });
const insights = createRoute({ getParentRoute: () => root, path: "/insights", component: lazyRouteComponent(() => import("./insights/Insights"), "Insights") });
const notifications = createRoute({ getParentRoute: () => root, path: "/notifications", component: lazyRouteComponent(() => import("./notifications/Notifications"), "Notifications") });
const connections = createRoute({ getParentRoute: () => root, path: "/connections", component: lazyRouteComponent(() => import("./secrets/Secrets"), "Secrets") });
const settings = createRoute({ getParentRoute: () => root, path: "/settings", component: lazyRouteComponent(() => import("./settings/Settings"), "Settings") });
const users = createRoute({ getParentRoute: () => root, path: "/users", component: lazyRouteComponent(() => import("./users/Users"), "Users") });
const tokens = createRoute({
  getParentRoute: () => root,
  path: "/tokens",
  component: lazyRouteComponent(() => import("./users/Tokens"), "Tokens"),
  validateSearch: (search: Record<string, unknown>): { state?: string } => ({ state: optional(search.state) }),
});
const sessions = createRoute({ getParentRoute: () => root, path: "/sessions", component: lazyRouteComponent(() => import("./users/Sessions"), "Sessions") });
const device = createRoute({ getParentRoute: () => root, path: "/device", component: lazyRouteComponent(() => import("./users/Device"), "Device") });

const router = createRouter({
  routeTree: root.addChildren([login, home, dags, dag.addChildren([grid, graph, calendar, code, versions, ofDag, about]), runs, run, task, requiredActions, capacity, assets, backfills, fleet, quarantine, insights, events, notifications, connections, settings, users, tokens, sessions, device]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

show();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
