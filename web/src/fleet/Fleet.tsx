import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { fleetsQuery, statusQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Command, Empty, Found, Meter, Section } from "../parts/parts";
import { StateMark } from "../parts/states";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { count, counted, duration, quoted } from "../parts/words";
import { Autoscaled } from "./Autoscaled";
import { pluginWarnings, stateOf } from "./services";

type Service = Schemas["ServiceStatus"];
const KINDS = ["scheduler", "worker", "triggerer", "launcher", "autoscaler", "processor", "api"];
const CAPACITY: Record<string, string> = { worker: "slots", triggerer: "capacity" };

export function Fleet() {
  useTitle("Fleet");
  const status = useQuery(statusQuery);
  const fleets = useQuery(fleetsQuery);
  return (
    <div className="page">
      <h1>Fleet</h1>
      <Section title="Services" aside={status.data && counted(status.data.services.length, "service")}>
        <Found of={status}>{(now) => <Services services={now.services} closed={now.not_active} />}</Found>
      </Section>
      <Section title="Not in full service">
        <Found of={status}>{(now) => <NotActive closed={now.not_active} />}</Found>
      </Section>
      <Section title="Fleets that an autoscaler keeps">
        <Found of={fleets}>
          {(page) =>
            page.items.length ? (
              page.items.map((fleet) => <Autoscaled key={fleet.name} fleet={fleet} />)
            ) : (
              <Empty title="No fleet is scaled by itself.">
                <p>An autoscaler starts and ends workers by what waits for them, and kills nothing:</p>
                <Command text="evenflow up --autoscale 0..4" />
              </Empty>
            )
          }
        </Found>
      </Section>
    </div>
  );
}

function Services({ services, closed }: { services: Service[]; closed: Schemas["ObjectServiceState"][] }) {
  const [drained, setDrained] = useState<{ name: string; state: "draining" | "active" } | null>(null);
  const shut = new Set(closed.filter((one) => one.kind === "worker").map((one) => one.name));
  const ordered = [...services].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || a.name.localeCompare(b.name));
  return (
    <>
      <Table
        label="Services"
        rows={ordered}
        keyOf={(service) => `${service.kind} ${service.name} ${service.started_at}`}
        columns={[
          {
            name: "Service",
            as: "name",
            cell: (service) => (
              <span className="named">
                <StateMark state={service.healthy ? "success" : "failed"} />
                <strong>{service.name}</strong>
              </span>
            ),
          },
          { name: "Kind", cell: (service) => service.kind },
          { name: "Host", cell: (service) => service.host },
          { name: "State", cell: (service) => stateOf(service, closed) },
          { name: "Taken", as: "meter-cell", cell: (service) => service.healthy && <Load service={service} /> },
          { name: "Queues", cell: (service) => listed(service.detail.queues) },
          { name: "Version", cell: (service) => service.version },
          { name: "Last heard", as: "right", cell: (service) => `${duration(service.beat_age_s)} ago` },
          { name: "Since", as: "right", cell: (service) => <Time at={service.started_at} /> },
          {
            name: "Drain",
            hidden: true,
            as: "right",
            cell: (service) =>
              service.kind === "worker" && (service.healthy || shut.has(service.name)) && (
                <Allowed to="operator">
                  <button type="button" onClick={() => setDrained({ name: service.name, state: shut.has(service.name) ? "active" : "draining" })}>
                    {shut.has(service.name) ? "Activate" : "Drain"}
                  </button>
                </Allowed>
              ),
          },
        ]}
      />
      {pluginWarnings(services).map((warning) => (
        <p key={warning} className="quiet">
          {warning}
        </p>
      ))}
      {drained && (
        <Sure
          title={drained.state === "draining" ? `Drain ${drained.name}` : `Activate ${drained.name}`}
          verb={drained.state === "draining" ? "Drain it" : "Activate it"}
          command={`evenflow ${drained.state === "draining" ? "drain" : "activate"} --worker ${quoted(drained.name)}`}
          act={() => ask("put", "/api/v1/service-states/{kind}/{name}", { names: { kind: "worker", name: drained.name }, body: { state: drained.state } })}
          close={() => setDrained(null)}
        >
          <p>
            {drained.state === "draining"
              ? "It takes on nothing new. What runs there goes on to its end, and nothing is killed."
              : "It takes on work again."}
          </p>
        </Sure>
      )}
    </>
  );
}

const listed = (queues: unknown) => (Array.isArray(queues) && queues.length ? queues.join(", ") : <span className="quiet">–</span>);

function Load({ service }: { service: Service }) {
  if (typeof service.detail.acts === "boolean") return <span>{service.detail.acts ? "acts" : "stands by"}</span>;
  const room = Number(service.detail[CAPACITY[service.kind] ?? ""]);
  const running = Number(service.detail.running);
  if (!Number.isFinite(room) || !Number.isFinite(running)) return <span className="quiet">–</span>;
  return (
    <span className="metered">
      <Meter used={running} of={room} label={`${service.kind} ${service.name}`} />
      <span className="number">
        {count(running)} of {count(room)}
      </span>
    </span>
  );
}

function NotActive({ closed }: { closed: Schemas["ObjectServiceState"][] }) {
  if (!closed.length) return <Empty title="Everything is in full service: nothing is paused, drained or frozen." />;
  return (
    <Table
      label="Not in full service"
      rows={closed}
      keyOf={(one) => `${one.kind} ${one.name}`}
      columns={[
        { name: "What", cell: (one) => (one.kind === "dag" ? <Link to="/dags/$dagId" params={{ dagId: one.name }}>{one.name}</Link> : `${one.kind} ${one.name}`) },
        { name: "State", cell: (one) => one.state.replaceAll("_", " ") },
        { name: "Since", cell: (one) => <Time at={one.since} /> },
        { name: "By", cell: (one) => one.actor ?? "" },
        { name: "Until", cell: (one) => (one.deadline ? <Time at={one.deadline} /> : "it is changed") },
        { name: "Why", as: "wide", cell: (one) => one.reason ?? "" },
      ]}
    />
  );
}
