import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { ask, type Schemas } from "../api/client";
import { assetEventsQuery, assetQuery, assetsQuery, partitionsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { useKey } from "../parts/once";
import { usePages } from "../parts/paging";
import { Command, Dialog, Empty, Found, Section } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { counted, instanceName, quoted } from "../parts/words";

const Lineage = lazy(() => import("./Lineage").then((found) => ({ default: found.Lineage })));
const PAGE = 200;

export function Assets() {
  useTitle("Assets");
  const { asset } = useSearch({ from: "/assets" });
  const navigate = useNavigate({ from: "/assets" });
  const { from, pages } = usePages();
  const assets = useQuery(assetsQuery({ ...from, limit: PAGE }));
  return (
    <div className="page">
      <h1>Assets</h1>
      <Found of={assets}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <Section title="Who makes what, and who waits for it">
                <Suspense fallback={<div className="loading" role="status" aria-label="Loading" />}>
                  <Lineage assets={page.items} />
                </Suspense>
              </Section>
              <Section title="All assets" aside={!page.more && !from.cursor && counted(page.items.length, "asset")}>
                <Table
                  label="Assets"
                  rows={page.items}
                  keyOf={(one) => one.name}
                  columns={[
                    { name: "Asset", cell: (one) => <Link to="/assets" search={(before) => ({ ...before, asset: one.name })}>{one.name}</Link> },
                    { name: "Where", as: "wide", cell: (one) => <code>{one.uri}</code> },
                    { name: "Made by", cell: (one) => <Dags of={one.producers} /> },
                    { name: "Waited for by", cell: (one) => <Dags of={one.consumers} /> },
                    { name: "Partitions", cell: (one) => partitionWord(one) },
                    { name: "Changed last", as: "right", cell: (one) => <Time at={one.last_event_at} /> },
                  ]}
                />
                {pages(page.next)}
              </Section>
            </>
          ) : (
            <Empty title="There is no asset yet.">
              <p>An asset is data that a task makes and DAGs wait for: give a task <code>outlets=[Asset("orders")]</code>, and a DAG <code>schedule=Asset("orders")</code>.</p>
            </Empty>
          )
        }
      </Found>
      {asset !== undefined && <One name={asset} close={() => void navigate({ search: (before) => ({ ...before, asset: undefined }), replace: true })} />}
    </div>
  );
}

function Dags({ of }: { of: string[] }) {
  if (!of.length) return <span className="quiet">nobody</span>;
  return of.map((dagId, at) => (
    <span key={dagId}>
      {at > 0 && ", "}
      <Link to="/dags/$dagId" params={{ dagId }}>{dagId}</Link>
    </span>
  ));
}

function partitionWord({ partitions }: Schemas["AssetSummary"]) {
  if (!partitions) return <span className="quiet">–</span>;
  return typeof partitions.every === "string" ? `each ${partitions.every}` : counted(Array.isArray(partitions.keys) ? partitions.keys.length : 0, "key");
}

/** Whether it is on the page that is shown or not. */
function One({ name, close }: { name: string; close: () => void }) {
  const found = useQuery(assetQuery(name));
  return (
    <Dialog title={name} open close={close} wide>
      <Found of={found}>
        {({ items: [asset] }) => (asset ? <About asset={asset} /> : <Empty title={`There is no asset ${name}, or none that is for you.`} />)}
      </Found>
    </Dialog>
  );
}

function About({ asset }: { asset: Schemas["AssetSummary"] }) {
  const events = useQuery(assetEventsQuery(asset.name));
  const [emits, setEmits] = useState(false);
  return (
    <>
      <p><code>{asset.uri}</code></p>
      {asset.partitions && <Partitions asset={asset.name} />}
      <h3>Events</h3>
      <Found of={events}>
        {(page) =>
          page.items.length ? (
            <Table
              label={`Events of ${asset.name}`}
              rows={page.items}
              keyOf={(one) => String(one.event_id)}
              columns={[
                { name: "At", cell: (one) => <Time at={one.at} /> },
                { name: "By", as: "wide", cell: (one) => <Maker of={one} /> },
                { name: "Partition", cell: (one) => one.partition ?? "" },
                { name: "Extra", cell: (one) => Object.keys(one.extra).length > 0 && <code>{JSON.stringify(one.extra)}</code> },
              ]}
            />
          ) : (
            <Empty title="It has not changed yet." />
          )
        }
      </Found>
      <footer>
        <Allowed to="author">
          <button type="button" onClick={() => setEmits(true)}>
            Say that it has changed
          </button>
        </Allowed>
      </footer>
      {emits && <Emit asset={asset} close={() => setEmits(false)} />}
    </>
  );
}

function Emit({ asset, close }: { asset: Schemas["AssetSummary"]; close: () => void }) {
  const keyOf = useKey();
  const body = { asset: asset.name };
  return (
    <Sure
      title={`${asset.name} has changed`}
      verb="Say so"
      command={`evenflow assets emit ${quoted(asset.name)}`}
      act={() => ask("post", "/api/v1/assets/events", { body, key: keyOf(body) })}
      close={close}
    >
      <p>{asset.consumers.length ? `DAGs that wait for it may begin a run: ${asset.consumers.join(", ")}.` : "No DAG waits for it."}</p>
    </Sure>
  );
}

function Maker({ of }: { of: Schemas["RecordedAssetEvent"] }) {
  if (!of.dag_id || !of.run_id || !of.task_id) return of.actor;
  const map = of.map_index ?? -1;
  return (
    <Link to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId: of.dag_id, runId: of.run_id, taskId: of.task_id }} search={map < 0 ? {} : { map }}>
      {of.dag_id} {instanceName(of.task_id, map)}, {of.run_id}
    </Link>
  );
}

/** Which there are, and which are missing. */
function Partitions({ asset }: { asset: string }) {
  const partitions = useQuery(partitionsQuery(asset));
  return (
    <Found of={partitions}>
      {(page) => {
        const missing = page.items.filter((one) => !one.is_done).length;
        return (
          <>
            <h3>
              Partitions <span className="quiet">{missing ? `${counted(missing, "is", "are")} missing` : "all are there"}</span>
            </h3>
            <ul className="partitions">
              {page.items.map((one) => (
                <li key={one.partition} className={one.is_done ? "is-done" : "is-missing"} title={one.is_done ? `there since ${one.at}, by ${one.actor}` : "missing"}>
                  {one.partition}
                  {!one.is_done && <span className="visually-hidden"> (missing)</span>}
                </li>
              ))}
            </ul>
            {missing > 0 && <Command text={`evenflow backfill create DAG --partitions-of ${quoted(asset)}`} />}
          </>
        );
      }}
    </Found>
  );
}
