import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { backfillsQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { usePages } from "../parts/paging";
import { Command, Empty, Found } from "../parts/parts";
import { Shares } from "../parts/Shares";
import { Sure } from "../parts/Sure";
import { Table, type Column } from "../parts/Table";
import { Time } from "../parts/time";
import { count } from "../parts/words";

const PAGE = 50;
type Backfill = Schemas["Backfill"];
type Change = { of: Backfill; kind: "pause" | "resume" | "cancel" };

export function Backfills() {
  useTitle("Backfills");
  return (
    <div className="page">
      <h1>Backfills</h1>
      <BackfillList />
    </div>
  );
}

/** All of them, or those of a DAG. */
export function BackfillList({ dagId }: { dagId?: string }) {
  const { from, pages } = usePages("Newest", "Older");
  const [change, setChange] = useState<Change | null>(null);
  const backfills = useQuery(backfillsQuery({ dag_id: dagId, ...from, limit: PAGE }));
  const ofDag: Column<Backfill>[] = dagId ? [] : [{ name: "DAG", cell: (one) => <Link to="/dags/$dagId/backfills" params={{ dagId: one.dag_id }}>{one.dag_id}</Link> }];
  return (
    <Found of={backfills}>
      {(page) =>
        page.items.length || from.cursor ? (
          <>
            <Table
              label="Backfills"
              rows={page.items}
              keyOf={(one) => String(one.backfill_id)}
              columns={[
                { name: "Number", cell: (one) => <span className="number">{one.backfill_id}</span> },
                ...ofDag,
                { name: "Of", cell: (one) => <Span of={one} /> },
                { name: "State", cell: (one) => stateOf(one) },
                { name: "Runs", as: "wide", cell: (one) => <Progress of={one} /> },
                { name: "At once", as: "right", cell: (one) => count(one.max_active_runs) },
                { name: "By", cell: (one) => one.created_by },
                { name: "Begun", as: "right", cell: (one) => <Time at={one.created_at} /> },
                { name: "Change", hidden: true, as: "right", cell: (one) => <Buttons of={one} act={setChange} /> },
              ]}
            />
            {pages(page.next)}
            {change && <Changed change={change} close={() => setChange(null)} />}
          </>
        ) : (
          <Empty title={dagId ? "It has had no backfill." : "There has been no backfill."}>
            <p>A backfill makes the runs of a span of dates, or of partitions that are missing:</p>
            <Command text={`evenflow backfill create ${dagId ?? "DAG"} 2026-01-01 2026-01-31 --dry-run`} />
          </Empty>
        )
      }
    </Found>
  );
}

function Span({ of }: { of: Backfill }) {
  if (of.partitions_of) return <Link to="/assets" search={{ asset: of.partitions_of }}>partitions of {of.partitions_of}</Link>;
  return (
    <span className="number">
      {of.from_date?.slice(0, 10)} to {of.to_date?.slice(0, 10)}
      {of.is_reversed && <span className="quiet">, the newest first</span>}
    </span>
  );
}

function stateOf(of: Backfill): string {
  if (of.cancelled_by) return `cancelled by ${of.cancelled_by}`;
  if (of.ended_at) return "ended";
  return of.is_paused ? "paused" : "under way";
}

function Progress({ of }: { of: Backfill }) {
  return (
    <Shares
      label={`Runs of backfill ${of.backfill_id}`}
      of={of.total}
      parts={[
        { state: "success", n: of.success, word: "success" },
        { state: "failed", n: of.failed, word: "failed" },
        { state: "running", n: of.active, word: "active" },
        { state: "skipped", n: of.passed_over, word: "passed over" },
        { state: "none", n: of.waiting, word: "waiting" },
      ]}
    />
  );
}

function Buttons({ of, act }: { of: Backfill; act: (change: Change) => void }) {
  if (of.ended_at) return null;
  return (
    <Allowed to="author">
      <span className="buttons">
        <button type="button" onClick={() => act({ of, kind: of.is_paused ? "resume" : "pause" })}>
          {of.is_paused ? "Go on" : "Pause"}
        </button>
        <button type="button" className="danger" onClick={() => act({ of, kind: "cancel" })}>
          Cancel
        </button>
      </span>
    </Allowed>
  );
}

const FOLLOWS = {
  pause: "It makes no more runs. Those that it has made go on.",
  resume: "It makes runs again, as many at once as before.",
  cancel: "It makes no more runs, and those that have not ended are cancelled: what runs of them is killed.",
};

function Changed({ change: { of, kind }, close }: { change: Change; close: () => void }) {
  const names = { backfill_id: String(of.backfill_id) };
  const act = () =>
    kind === "cancel"
      ? ask("post", "/api/v1/backfills/{backfill_id}/cancel", { names })
      : ask("patch", "/api/v1/backfills/{backfill_id}", { names, body: { is_paused: kind === "pause" } });
  const title = { pause: "Pause", resume: "Go on with", cancel: "Cancel" }[kind];
  return (
    <Sure title={`${title} backfill ${of.backfill_id} of ${of.dag_id}`} verb={kind === "resume" ? "Go on" : title} danger={kind === "cancel"} command={`evenflow backfill ${kind} ${of.backfill_id}`} act={act} close={close}>
      <p>{FOLLOWS[kind]}</p>
    </Sure>
  );
}
