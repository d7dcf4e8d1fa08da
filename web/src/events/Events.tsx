import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { eventsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Detail } from "../parts/Detail";
import { usePages } from "../parts/paging";
import { Command, Empty, Found } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count } from "../parts/words";

const PAGE = 100;
type Event = Schemas["ChangeEvent"];
const FILTERS = [
  { name: "actor", label: "Who", hint: "a person or a service" },
  { name: "action", label: "What", hint: "pool, or pool.set" },
  { name: "object", label: "Of what", hint: "a DAG, a pool, a setting" },
] as const;

export function Events() {
  useTitle("Events");
  const { cursor: _, ...wanted } = useSearch({ from: "/events" });
  const navigate = useNavigate({ from: "/events" });
  const { from, pages } = usePages("Newest", "Older");
  const events = useQuery(eventsQuery({ ...wanted, ...from, limit: PAGE }));
  const isFiltered = FILTERS.some(({ name }) => wanted[name]);
  return (
    <div className="page">
      <h1>Events</h1>
      <p className="quiet">Who changed what, was refused, or asked for secrets.</p>
      <form role="search" className="filters" aria-label="Filter events">
        {FILTERS.map(({ name, label, hint }) => (
          <label key={name}>
            {label}{" "}
            <input
              type="search"
              value={wanted[name] ?? ""}
              placeholder={hint}
              onChange={(event) => void navigate({ search: (before) => ({ ...before, [name]: event.target.value || undefined, cursor: undefined }), replace: true })}
            />
          </label>
        ))}
      </form>
      <Found of={events}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <Table
                label="Events"
                rows={page.items}
                keyOf={(event) => String(event.event_id)}
                columns={[
                  { name: "At", cell: (event) => <Time at={event.last_at ?? event.at} /> },
                  { name: "Who", cell: (event) => <Link to="/events" search={{ ...wanted, actor: event.actor }}>{event.actor}</Link> },
                  { name: "What", cell: (event) => <Action event={event} /> },
                  { name: "Of what", cell: (event) => <Of event={event} /> },
                  { name: "Detail", as: "wide", cell: (event) => <Detail detail={event.detail} /> },
                  { name: "From", cell: (event) => <span title={[event.request_id && `request ${event.request_id}`, event.token_id !== null && `token ${event.token_id}`].filter(Boolean).join(", ")}>{event.address ?? ""}</span> },
                ]}
              />
              {pages(page.next)}
            </>
          ) : isFiltered ? (
            <Empty title="There is no such event." />
          ) : (
            <Empty title="Nobody has changed anything yet.">
              <p>The same on the command line:</p>
              <Command text="evenflow events" />
            </Empty>
          )
        }
      </Found>
    </div>
  );
}

function Action({ event }: { event: Event }) {
  const [kind = "", verb = ""] = event.action.split(".");
  return (
    <>
      <span className="quiet">{kind.replaceAll("_", " ")}</span> {verb.replaceAll("_", " ")}
      {event.times > 1 && <span className="quiet number"> {count(event.times)} times</span>}
    </>
  );
}

function Of({ event }: { event: Event }) {
  const [dagId = "", runId] = event.object.split("/");
  if (event.action.startsWith("run.") && runId) return <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }}>{event.object}</Link>;
  if (event.action.startsWith("dag.")) return <Link to="/dags/$dagId" params={{ dagId: event.object }}>{event.object}</Link>;
  if (event.action.startsWith("pool.")) return <Link to="/capacity">{event.object}</Link>;
  return event.object;
}
