// Tokens of people, tools and services: which were given out, new ones, and their end. For admins.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { tokensQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed, type Role } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { usePages } from "../parts/paging";
import { Command, Empty, Found } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { RoleField } from "./RoleField";
import { useScope, Where } from "./Scope";
import { namesIn } from "./scopes";
import { ShownOnce } from "./ShownOnce";
import { createCommand, servedBy, TOKEN_KINDS, TOKEN_STATES, type TokenKind } from "./tokens";

const PAGE = 100;
type Token = Schemas["TokenSummary"];

export function Tokens() {
  useTitle("Tokens");
  const { state } = useSearch({ from: "/tokens" });
  const navigate = useNavigate({ from: "/tokens" });
  const known = state === "any" ? undefined : (TOKEN_STATES.find((one) => one === state) ?? "good");
  const { from, pages } = usePages("Newest", "Older");
  const [revoked, setRevoked] = useState<Token | null>(null);
  const [isAdded, setAdded] = useState(false);
  const [given, setGiven] = useState<Schemas["GivenToken"] | null>(null);
  const tokens = useQuery(tokensQuery({ ...(known ? { state: known } : {}), ...from, limit: PAGE }));
  return (
    <div className="page">
      <div className="head">
        <h1>Tokens</h1>
        <select aria-label="State of the tokens" value={known ?? "any"} onChange={(event) => void navigate({ search: { state: event.target.value }, replace: true })}>
          {TOKEN_STATES.map((one) => (
            <option key={one}>{one}</option>
          ))}
          <option value="any">in any state</option>
        </select>
        <span className="spread" />
        <Allowed to="admin">
          <button type="button" className="primary" onClick={() => setAdded(true)}>
            Make a token
          </button>
        </Allowed>
      </div>
      <p className="quiet">Tools show one with each request, and services when they start. A text is shown once, and stored nowhere.</p>
      <Found of={tokens}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <Table
                label="Tokens"
                rows={page.items}
                keyOf={(one) => String(one.token_id)}
                columns={[
                  { name: "Number", as: "right", cell: (one) => one.token_id },
                  { name: "Name", cell: (one) => <strong>{one.name}</strong> },
                  { name: "For", cell: (one) => <For of={one} /> },
                  { name: "Where", cell: (one) => (one.serves.length ? one.serves.join(", ") : <Where of={one.scope} />) },
                  { name: "State", cell: (one) => <StateOf of={one} /> },
                  { name: "Made", cell: (one) => <><Time at={one.created_at} /> <span className="quiet">by {one.created_by}</span></> },
                  { name: "Used", cell: (one) => (one.used_at ? <Time at={one.used_at} /> : <span className="quiet">not yet</span>) },
                  { name: "Until", cell: (one) => (one.is_renewed && one.state === "good" ? <span className="quiet">its maker ends</span> : <Time at={one.expires_at} as="moment" />) },
                  {
                    name: "Revoke",
                    hidden: true,
                    as: "right",
                    cell: (one) =>
                      one.state === "good" && (
                        <button type="button" className="danger" aria-label={`Revoke token ${one.token_id} of ${one.name}`} onClick={() => setRevoked(one)}>
                          Revoke
                        </button>
                      ),
                  },
                ]}
              />
              {pages(page.next)}
            </>
          ) : (
            <Empty title={known ? `No token is ${known}.` : "No token was given out yet."}>
              <Command text="evenflow tokens create operator --name grafana --role viewer" />
            </Empty>
          )
        }
      </Found>
      {isAdded && <Make close={() => setAdded(false)} give={setGiven} />}
      {revoked && <Revoke token={revoked} close={() => setRevoked(null)} />}
      {given && (
        <ShownOnce title={`The token of ${given.name}`} text={given.token} label="Copy the token" close={() => setGiven(null)}>
          <p>
            It is token {given.token_id}, good until <Time at={given.expires_at} as="moment" />. It is shown this once, and belongs into <code>EVENFLOW_TOKEN</code>.
          </p>
        </ShownOnce>
      )}
    </div>
  );
}

function For({ of: { kind, role } }: { of: Token }) {
  if (kind === "session") return <>a browser{role && `, ${role}`}</>;
  return kind === "operator" ? <>{role ?? <span className="quiet">no role</span>}</> : <>{TOKEN_KINDS[kind as TokenKind] ?? kind}</>;
}

const StateOf = ({ of }: { of: Token }) => (
  <>
    {of.state} {of.revoked_by && <span className="quiet">by {of.revoked_by}</span>}
  </>
);

function Make({ close, give }: { close: () => void; give: (given: Schemas["GivenToken"]) => void }) {
  const [kind, setKind] = useState<TokenKind>("operator");
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [served, setServed] = useState("");
  const [days, setDays] = useState("");
  const { scope, options, fields } = useScope();
  const isPerson = kind === "operator";
  const hasScope = isPerson && role !== "admin" && options !== "";
  const serves = namesIn(served);
  const asked = { kind, name: name.trim(), role, serves, days };
  const act = async () =>
    give(
      await ask("post", "/api/v1/tokens", {
        body: {
          kind,
          name: asked.name,
          role: isPerson ? role : null,
          scope: hasScope ? scope : null,
          serves: isPerson ? [] : serves,
          days: days ? Number(days) : null,
        },
      }),
    );
  return (
    <Sure title="Make a token" verb="Make it" isGood={asked.name !== ""} command={createCommand(asked, hasScope ? options : "")} act={act} close={close}>
      <label htmlFor="kind">For</label>
      <select id="kind" value={kind} onChange={(event) => setKind(event.target.value as TokenKind)}>
        {Object.entries(TOKEN_KINDS).map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
      <Field id="name" label="Name" value={name} change={setName} placeholder={isPerson ? "grafana" : "gpu-fleet"} />
      {isPerson ? (
        <>
          <RoleField role={role} change={setRole} />
          {role === "admin" ? <p className="quiet">An admin's role counts everywhere.</p> : fields}
        </>
      ) : (
        <>
          <Field id="serves" label={servedBy(kind).many} hint="with commas; empty: all" value={served} change={setServed} placeholder="all" spellCheck={false} />
        </>
      )}
      <Field id="days" label="For how many days" value={days} change={setDays} type="number" min={1} placeholder={isPerson ? "90" : "30"} />
    </Sure>
  );
}

function Revoke({ token, close }: { token: Token; close: () => void }) {
  return (
    <Sure
      title={`Revoke token ${token.token_id} of ${token.name}`}
      verb="Revoke it"
      danger
      command={`evenflow tokens revoke ${token.token_id}`}
      act={() => ask("delete", "/api/v1/tokens/{token_id}", { names: { token_id: String(token.token_id) } })}
      close={close}
    >
      <p>
        {token.kind === "operator" || token.kind === "session"
          ? "Whoever shows it is refused at once, and sessions that were begun with it end."
          : "Services that came with it are refused at once: they kill what they run, and end."}
      </p>
    </Sure>
  );
}
