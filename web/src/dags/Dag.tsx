import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ask, type Schemas } from "../api/client";
import { dagQuery } from "../api/queries";
import { useState } from "react";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Icon } from "../parts/icons";
import { Found, Switch } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Time } from "../parts/time";
import { count, quoted } from "../parts/words";
import { usePause } from "./Dags";
import { Trigger } from "./Trigger";

/** No run of it begins any more, and those that have begun run to their end; until then that can be taken back. */
function Drain({ dagId, drains }: { dagId: string; drains: boolean }) {
  const [asked, setAsked] = useState(false);
  const verb = drains ? "Activate" : "Drain";
  return (
    <Allowed to="operator">
      <button type="button" onClick={() => setAsked(true)}>
        {verb}
      </button>
      {asked && (
        <Sure
          title={`${verb} ${dagId}`}
          verb={`${verb} it`}
          command={`evenflow ${verb.toLowerCase()} ${quoted(dagId)}`}
          act={() => ask("put", "/api/v1/service-states/{kind}/{name}", { names: { kind: "dag", name: dagId }, body: { state: drains ? "active" : "draining" } })}
          close={() => setAsked(false)}
        >
          <p>{drains ? "Its runs begin again." : "Runs that have begun run to their end, and no other one begins. Nothing is killed. Then the DAG is paused."}</p>
        </Sure>
      )}
    </Allowed>
  );
}

/** Which one falls due next, and how many runs have missed one lately; the others stand on the page About. */
function NextDeadline({ of }: { of: Schemas["DagDetail"] }) {
  const [next] = of.deadlines.filter((one) => one.next_due_at).sort((a, b) => (a.next_due_at! < b.next_due_at! ? -1 : 1));
  const missed = of.deadlines.reduce((sum, one) => sum + one.missed, 0);
  return (
    <Link to="/dags/$dagId/about" params={{ dagId: of.dag_id }} title={next?.name}>
      {next ? <Time at={next.next_due_at} /> : "none is near"}
      {missed > 0 && `, ${count(missed)} missed`}
    </Link>
  );
}

const TABS = [
  { to: "/dags/$dagId", name: "Grid" },
  { to: "/dags/$dagId/graph", name: "Graph" },
  { to: "/dags/$dagId/calendar", name: "Calendar" },
  { to: "/dags/$dagId/code", name: "Code" },
  { to: "/dags/$dagId/versions", name: "Versions" },
  { to: "/dags/$dagId/backfills", name: "Backfills" },
  { to: "/dags/$dagId/about", name: "About" },
] as const;

export function Dag() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const { trigger } = useSearch({ from: "/dags/$dagId" });
  const navigate = useNavigate();
  const dag = useQuery(dagQuery(dagId));
  const pause = usePause(dagId);
  useTitle(dagId);
  const asked = (open: boolean) => void navigate({ to: ".", search: (before) => ({ ...before, trigger: open ? true : undefined }), replace: true });
  return (
    <div className="page">
      {!dag.data && <h1>{dagId}</h1>}
      <Found of={dag}>
        {(found) => (
          <>
            <div className="head">
              <h1>{found.display_name}</h1>
              <Allowed to="author">
                <Switch on={!found.is_paused} busy={pause.isPending} label={`${found.display_name} is on`} change={(on) => pause.mutate(!on)} />
                <span className="spread" />
                {!found.is_paused && <Drain dagId={dagId} drains={found.service_state === "draining"} />}
                <button type="button" className="primary" onClick={() => asked(true)}>
                  <Icon name="play" /> Trigger
                </button>
              </Allowed>
            </div>
            <dl className="facts-line">
              <div><dt>Schedule</dt><dd>{found.schedule ?? "when triggered"}</dd></div>
              {found.next_run_at && !found.is_paused && <div><dt>Next run</dt><dd><Time at={found.next_run_at} /></dd></div>}
              {(found.is_paused || found.service_state !== "active") && <div><dt>State</dt><dd>{found.service_state}{found.paused_reason && `: ${found.paused_reason}`}</dd></div>}
              {found.deadlines.length > 0 && <div><dt>Deadline</dt><dd><NextDeadline of={found} /></dd></div>}
              {found.owner && <div><dt>Owner</dt><dd>{found.owner}</dd></div>}
              <div><dt>File</dt><dd>{found.file}</dd></div>
              <div><dt>Version</dt><dd>{found.version_number}</dd></div>
              {!found.is_active && <div><dt>Gone</dt><dd>its file does not define it any more</dd></div>}
            </dl>
            {found.description && <p className="quiet">{found.description}</p>}
            <nav className="tabs" aria-label="Views of the DAG">
              {TABS.map((tab) => (
                <Link key={tab.to} to={tab.to} params={{ dagId }} activeOptions={{ exact: true, includeSearch: false }} activeProps={{ "aria-current": "page" }}>
                  {tab.name}
                </Link>
              ))}
            </nav>
            <Outlet />
            {trigger && <Trigger dag={found} close={() => asked(false)} />}
          </>
        )}
      </Found>
    </div>
  );
}
