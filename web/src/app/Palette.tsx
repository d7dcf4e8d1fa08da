import * as Ariakit from "@ariakit/react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useDeferredValue, useEffect, useState } from "react";
import type { Schemas } from "../api/client";
import { dagsQuery, namedRunsQuery, poolsQuery, settingsQuery, statusQuery } from "../api/queries";
import { choose } from "../parts/choices";
import { Icon, type IconName } from "../parts/icons";
import { usePlaces } from "./places";

const SHOWN = 12; // DAGs: who has more that fit types on

/** What was found for the letters before stays until the answer for these is there: of that, only what has these too. */
const isMeant = (dag: Schemas["DagSummary"], search: string) =>
  [dag.dag_id, dag.display_name, dag.owner, ...dag.tags].join(" ").toLowerCase().includes(search.toLowerCase());

interface Entry {
  id: string;
  name: string;
  kind: string;
  icon: IconName;
  go: () => void;
}

export function Palette({ open, setOpen, logOut }: { open: boolean; setOpen: (open: boolean) => void; logOut: () => void }) {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        setOpen(true);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [setOpen]);
  return (
    <Ariakit.Dialog open={open} onClose={() => setOpen(false)} unmountOnHide aria-label="Find" className="palette" backdrop={<div className="backdrop" />}>
      <Choice close={() => setOpen(false)} logOut={logOut} />
    </Ariakit.Dialog>
  );
}

function Choice({ close, logOut }: { close: () => void; logOut: () => void }) {
  const [typed, setTyped] = useState("");
  const search = useDeferredValue(typed.trim());
  const dags = useQuery({ ...dagsQuery(search, { limit: SHOWN }), refetchInterval: false });
  const few = { enabled: search.length > 1, refetchInterval: false } as const; // what a letter or none would list is no help
  const runs = useQuery({ ...namedRunsQuery(search), ...few });
  const pools = useQuery({ ...poolsQuery, ...few });
  const settings = useQuery({ ...settingsQuery, ...few });
  const status = useQuery({ ...statusQuery, ...few });
  const navigate = useNavigate();
  const places = usePlaces();
  const entries: Entry[] = [
    ...places.map((place) => ({ id: place.to, name: place.name, kind: "page", icon: place.icon, go: () => void navigate({ to: place.to }) })),
    { id: "light", name: "Light colours", kind: "action", icon: "sun" as const, go: () => choose({ theme: "light" }) },
    { id: "dark", name: "Dark colours", kind: "action", icon: "moon" as const, go: () => choose({ theme: "dark" }) },
    { id: "utc", name: "Times in UTC", kind: "action", icon: "clock" as const, go: () => choose({ zone: "utc" }) },
    { id: "local", name: "Times of this place", kind: "action", icon: "clock" as const, go: () => choose({ zone: "local" }) },
    { id: "out", name: "Log out", kind: "action", icon: "out" as const, go: logOut },
  ].filter((entry) => entry.name.toLowerCase().includes(search.toLowerCase()));
  for (const dag of (dags.data?.items ?? []).filter((one) => isMeant(one, search))) {
    const names = { dagId: dag.dag_id };
    entries.push({ id: `dag ${dag.dag_id}`, name: dag.display_name, kind: "DAG", icon: "dags", go: () => void navigate({ to: "/dags/$dagId", params: names }) });
    entries.push({
      id: `trigger ${dag.dag_id}`,
      name: `Trigger ${dag.display_name}`,
      kind: "action",
      icon: "play",
      go: () => void navigate({ to: "/dags/$dagId", params: names, search: { trigger: true } }),
    });
  }
  if (few.enabled) {
    for (const { dag_id: dagId, run_id: runId } of runs.data?.items ?? [])
      entries.push({ id: `run ${dagId}/${runId}`, name: `${runId} of ${dagId}`, kind: "run", icon: "runs", go: () => void navigate({ to: "/dags/$dagId/runs/$runId", params: { dagId, runId } }) });
    const named = (kind: string, names: string[], icon: IconName, to: "/capacity" | "/fleet" | "/settings") => {
      for (const name of names.filter((one) => one.toLowerCase().includes(search.toLowerCase())).slice(0, SHOWN))
        entries.push({ id: `${kind} ${name}`, name, kind, icon, go: () => void navigate({ to }) });
    };
    named("pool", (pools.data?.items ?? []).map((one) => one.name), "capacity", "/capacity");
    named("worker", (status.data?.services ?? []).filter((one) => one.kind === "worker").map((one) => one.name), "fleet", "/fleet");
    named("setting", (settings.data?.items ?? []).map((one) => one.name), "settings", "/settings");
  }
  const take = (entry: Entry) => {
    close();
    entry.go();
  };
  /** The one that was marked may have left the list a moment ago, and the mark is not on the first of the others yet. */
  const takeFirst = (event: KeyboardEvent<HTMLInputElement>) => {
    const marked = event.currentTarget.getAttribute("aria-activedescendant");
    const [first] = entries;
    if (event.key === "Enter" && first && !(marked && document.getElementById(marked))) {
      event.preventDefault();
      take(first);
    }
  };
  return (
    <Ariakit.ComboboxProvider setValue={setTyped} open>
      <Ariakit.Combobox
        onKeyDown={takeFirst}
        autoSelect="always"
        autoFocus
        placeholder="A page, a DAG, a run, a pool, an action"
        aria-label="Find a page, a DAG or an action"
        className="palette-input"
      />
      <Ariakit.ComboboxList alwaysVisible className="palette-list" aria-label="Found">
        {entries.map((entry) => (
          <Ariakit.ComboboxItem
            key={entry.id}
            value={entry.name}
            setValueOnClick={false}
            focusOnHover
            className="palette-item"
            onClick={() => take(entry)}
          >
            <Icon name={entry.icon} />
            <span>{entry.name}</span>
            <span className="quiet">{entry.kind}</span>
          </Ariakit.ComboboxItem>
        ))}
      </Ariakit.ComboboxList>
      {entries.length === 0 && <p className="empty quiet">Nothing has that in its name.</p>}
    </Ariakit.ComboboxProvider>
  );
}
