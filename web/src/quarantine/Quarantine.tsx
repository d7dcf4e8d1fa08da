// What a scheduler has set aside because handling it failed, so that all others go on; and what can be done about it.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { quarantineQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { usePages } from "../parts/paging";
import { Empty, Found } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";
import { Operate } from "../runs/Operate";
import { placeOf, whatIs } from "./places";

const PAGE = 100;
type Entry = Schemas["QuarantineEntry"];
type Kind = Schemas["SetAside"]["kind"];

export function Quarantine() {
  useTitle("Quarantine");
  const { from, pages } = usePages("Newest", "Older");
  const [released, setReleased] = useState<Entry | null>(null);
  const [cancelled, setCancelled] = useState<{ dagId: string; runId: string } | null>(null);
  const entries = useQuery(quarantineQuery({ ...from, limit: PAGE }));
  return (
    <div className="page">
      <h1>Quarantine</h1>
      <p className="quiet">What cannot be handled, however often it is tried, is set aside: it stands still, and all others go on.</p>
      <Found of={entries}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <Table
                label="Quarantine"
                rows={page.items}
                keyOf={(one) => `${one.kind} ${one.object}`}
                columns={[
                  { name: "What", cell: (one) => whatIs(one.kind) },
                  { name: "Of", cell: (one) => <Of entry={one} /> },
                  { name: "Since", cell: (one) => <Time at={one.since} /> },
                  { name: "Why", as: "wide", cell: (one) => one.reason },
                  { name: "Cure", hidden: true, as: "right", cell: (one) => <Cures entry={one} release={setReleased} cancel={setCancelled} /> },
                ]}
              />
              {pages(page.next)}
            </>
          ) : (
            <Empty title="Nothing is in quarantine." />
          )
        }
      </Found>
      {released && (
        <Sure
          title={`Try ${released.object} again`}
          verb="Try it again"
          command={`evenflow quarantine release ${released.kind} ${quoted(released.object)}`}
          act={() => ask("post", "/api/v1/quarantine/release", { body: { kind: released.kind as Kind, object: released.object } })}
          close={() => setReleased(null)}
        >
          <p>What was said of it meanwhile is applied now. If it fails again, it is set aside again.</p>
        </Sure>
      )}
      {cancelled && <Operate operation={{ kind: "cancel" }} scope={cancelled} close={() => setCancelled(null)} />}
    </div>
  );
}

function Of({ entry }: { entry: Entry }) {
  const { dagId, runId } = placeOf(entry.kind, entry.object);
  if (dagId && runId) {
    return (
      <Link to="/dags/$dagId/runs/$runId" params={{ dagId, runId }}>
        {entry.object}
      </Link>
    );
  }
  if (dagId) {
    return (
      <Link to="/dags/$dagId" params={{ dagId }}>
        {dagId}
      </Link>
    );
  }
  return <Link to="/backfills">{entry.object}</Link>;
}

function Cures({ entry, release, cancel }: { entry: Entry; release: (entry: Entry) => void; cancel: (run: { dagId: string; runId: string }) => void }) {
  const { dagId, runId } = placeOf(entry.kind, entry.object);
  return (
    <span className="buttons">
      {dagId && runId && (
        <Allowed to="author">
          <button type="button" className="danger" aria-label={`Cancel the run ${entry.object}`} onClick={() => cancel({ dagId, runId })}>
            Cancel
          </button>
        </Allowed>
      )}
      <Allowed to="operator">
        <button type="button" aria-label={`Try again ${entry.object}`} onClick={() => release(entry)}>
          Try again
        </button>
      </Allowed>
    </span>
  );
}
