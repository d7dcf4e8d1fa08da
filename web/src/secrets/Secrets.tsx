// Connections and variables. What is secret is never asked for here: it can be set anew, and not seen.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { connectionsQuery, variablesQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { Command, Empty, Found, Section } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";

type Stored = Schemas["StoredConnection"] | Schemas["StoredVariable"];
type Kind = "connection" | "variable";
type Asked = { kind: Kind; of: Stored | null; gone?: boolean };

export function Secrets() {
  useTitle("Connections");
  const connections = useQuery(connectionsQuery);
  const variables = useQuery(variablesQuery);
  const [asked, setAsked] = useState<Asked | null>(null);
  const add = (kind: Kind) => (
    <Allowed to="operator">
      <button type="button" onClick={() => setAsked({ kind, of: null })}>
        Add a {kind}
      </button>
    </Allowed>
  );
  return (
    <div className="page">
      <h1>Connections and variables</h1>
      <p className="quiet">They are stored encrypted. A task gets those that its DAG may use; no page shows what is secret in them.</p>
      <Section title="Connections" aside={add("connection")}>
        <Found of={connections}>
          {(page) =>
            page.items.length ? (
              <Table
                label="Connections"
                rows={page.items}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Connection", cell: (one) => <Name of={one} /> },
                  { name: "Type", cell: (one) => one.conn_type },
                  { name: "Where", as: "wide", cell: (one) => <code>{one.uri}</code> },
                  { name: "For", cell: (one) => <ForDags of={one} /> },
                  { name: "Changed", cell: (one) => <Changed of={one} /> },
                  { name: "Change", hidden: true, as: "right", cell: (one) => <Buttons kind="connection" of={one} ask={setAsked} /> },
                ]}
              />
            ) : (
              <Empty title="There is no connection yet.">
                <Command text="evenflow connections set warehouse" />
              </Empty>
            )
          }
        </Found>
      </Section>
      <Section title="Variables" aside={add("variable")}>
        <Found of={variables}>
          {(page) =>
            page.items.length ? (
              <Table
                label="Variables"
                rows={page.items}
                keyOf={(one) => one.name}
                columns={[
                  { name: "Variable", cell: (one) => <Name of={one} /> },
                  { name: "Value", cell: (one) => <code>{one.value}</code> },
                  { name: "For", cell: (one) => <ForDags of={one} /> },
                  { name: "Changed", cell: (one) => <Changed of={one} /> },
                  { name: "Change", hidden: true, as: "right", cell: (one) => <Buttons kind="variable" of={one} ask={setAsked} /> },
                ]}
              />
            ) : (
              <Empty title="There is no variable yet.">
                <Command text="evenflow variables set greeting" />
              </Empty>
            )
          }
        </Found>
      </Section>
      {asked && (asked.gone ? <Delete asked={asked} close={() => setAsked(null)} /> : <Change asked={asked} close={() => setAsked(null)} />)}
    </div>
  );
}

function Name({ of }: { of: Stored }) {
  return (
    <>
      <strong>{of.name}</strong>
      {of.description && <p className="quiet">{of.description}</p>}
      {of.problem && <p className="why-line">{of.problem}</p>}
    </>
  );
}

const ForDags = ({ of }: { of: Stored }) => (of.dags.length ? <>{of.dags.join(", ")}</> : <span className="quiet">all DAGs</span>);

function Changed({ of }: { of: Stored }) {
  if (!of.changed_at) return <span className="quiet">{of.source}</span>;
  return (
    <>
      <Time at={of.changed_at} /> <span className="quiet">by {of.changed_by}</span>
    </>
  );
}

function Buttons({ kind, of, ask: act }: { kind: Kind; of: Stored; ask: (asked: Asked) => void }) {
  if (!of.changed_at) return null; // it stands elsewhere, and is changed there
  return (
    <Allowed to="operator">
      <span className="buttons">
        <button type="button" aria-label={`Change ${of.name}`} onClick={() => act({ kind, of })}>
          Change
        </button>
        <button type="button" className="danger" aria-label={`Delete ${of.name}`} onClick={() => act({ kind, of, gone: true })}>
          Delete
        </button>
      </span>
    </Allowed>
  );
}

const names = (text: string) => text.split(",").map((one) => one.trim()).filter(Boolean);

function Change({ asked: { kind, of }, close }: { asked: Asked; close: () => void }) {
  const [name, setName] = useState(of?.name ?? "");
  const [secret, setSecret] = useState("");
  const [description, setDescription] = useState(of?.description ?? "");
  const [dags, setDags] = useState(of?.dags.join(", ") ?? "");
  const about = { description, dags: names(dags) };
  const act = () =>
    kind === "connection"
      ? ask("put", "/api/v1/connections/{name}", { names: { name }, body: { ...about, ...(secret ? { uri: secret } : {}) } })
      : ask("put", "/api/v1/variables/{name}", { names: { name }, body: { ...about, ...(secret ? { value: secret } : {}) } });
  const what = kind === "connection" ? "URI" : "Value";
  return (
    <Sure title={of ? `Change ${of.name}` : `Add a ${kind}`} verb={of ? "Change" : "Add"} isGood={name.trim() !== "" && (of !== null || secret !== "")} act={act} close={close}>
      {!of && (
        <>
          <Field id="name" label="Name" value={name} change={setName} />
        </>
      )}
      <Field id="secret" label={what} hint={of ? "left empty: as it is" : kind === "connection" ? "as in postgres://user:password@host:5432/name" : undefined} value={secret} change={setSecret} type="password" autoComplete="new-password" />
      <Field id="description" label="What it is for" value={description} change={setDescription} />
      <Field id="dags" label="For the DAGs" hint="names or patterns, with commas; empty: all" value={dags} change={setDags} />
    </Sure>
  );
}

function Delete({ asked: { kind, of }, close }: { asked: Asked; close: () => void }) {
  const name = of?.name ?? "";
  const act = () =>
    kind === "connection" ? ask("delete", "/api/v1/connections/{name}", { names: { name } }) : ask("delete", "/api/v1/variables/{name}", { names: { name } });
  return (
    <Sure title={`Delete ${name}`} verb="Delete it" danger command={`evenflow ${kind}s delete ${quoted(name)}`} act={act} close={close}>
      <p>Tasks that ask for it from now on fail, and it cannot be had back.</p>
    </Sure>
  );
}
