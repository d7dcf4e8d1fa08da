// Users: who logs in with a password, and what they may. For admins.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { usersQuery } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed, type Role } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { usePages } from "../parts/paging";
import { Command, Empty, Found } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";
import { RoleField } from "./RoleField";
import { useScope, Where } from "./Scope";
import { ShownOnce } from "./ShownOnce";

const PAGE = 100;
type User = Schemas["User"];
type Asked = { what: "add" } | { what: "role" | "scope" | "password" | "disable" | "enable"; user: User };

export function Users() {
  useTitle("Users");
  const { from, pages } = usePages();
  const users = useQuery(usersQuery({ ...from, limit: PAGE }));
  const [asked, setAsked] = useState<Asked | null>(null);
  const [given, setGiven] = useState<Schemas["GivenPassword"] | null>(null);
  return (
    <div className="page">
      <div className="head">
        <h1>Users</h1>
        <span className="spread" />
        <Allowed to="admin">
          <button type="button" className="primary" onClick={() => setAsked({ what: "add" })}>
            Add a user
          </button>
        </Allowed>
      </div>
      <p className="quiet">They log in with a name and a password. Tools show <Link to="/tokens">tokens</Link>.</p>
      <Found of={users}>
        {(page) =>
          page.items.length || from.cursor ? (
            <>
              <Table
                label="Users"
                rows={page.items}
                keyOf={(user) => user.name}
                columns={[
                  { name: "User", cell: (user) => <strong>{user.name}</strong> },
                  { name: "Role", cell: (user) => (user.is_disabled ? <span className="quiet">disabled ({user.role})</span> : user.role) },
                  { name: "Where", cell: (user) => <Where of={user.scope} /> },
                  { name: "Logged in", cell: (user) => (user.logged_in_at ? <Time at={user.logged_in_at} /> : <span className="quiet">never</span>) },
                  { name: "Made", cell: (user) => <Made of={user} /> },
                  { name: "Change", hidden: true, as: "right", cell: (user) => <Buttons user={user} ask={setAsked} /> },
                ]}
              />
              {pages(page.next)}
            </>
          ) : (
            <Empty title="There is no user yet.">
              <Command text="evenflow users add ada --role admin" />
            </Empty>
          )
        }
      </Found>
      {asked && <Change asked={asked} close={() => setAsked(null)} give={setGiven} />}
      {given?.password && (
        <ShownOnce title={`The password of ${given.name}`} text={given.password} label="Copy the password" close={() => setGiven(null)}>
          <p>It is shown this once, and stored nowhere. {given.name} can change it under “Sessions”.</p>
        </ShownOnce>
      )}
    </div>
  );
}

const Made = ({ of }: { of: User }) => (
  <>
    <Time at={of.created_at} /> <span className="quiet">by {of.created_by}</span>
  </>
);

function Buttons({ user, ask: act }: { user: User; ask: (asked: Asked) => void }) {
  return (
    <span className="buttons">
      <button type="button" aria-label={`Change the role of ${user.name}`} onClick={() => act({ what: "role", user })}>
        Role
      </button>
      <button type="button" aria-label={`Change where the role of ${user.name} counts`} onClick={() => act({ what: "scope", user })}>
        Where
      </button>
      <button type="button" aria-label={`Give ${user.name} another password`} onClick={() => act({ what: "password", user })}>
        Password
      </button>
      {user.is_disabled ? (
        <button type="button" aria-label={`Enable ${user.name}`} onClick={() => act({ what: "enable", user })}>
          Enable
        </button>
      ) : (
        <button type="button" className="danger" aria-label={`Disable ${user.name}`} onClick={() => act({ what: "disable", user })}>
          Disable
        </button>
      )}
    </span>
  );
}

function Change({ asked, close, give }: { asked: Asked; close: () => void; give: (given: Schemas["GivenPassword"]) => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>(asked.what === "add" ? "viewer" : (asked.user.role as Role));
  const { scope, options, fields } = useScope(asked.what === "add" ? null : asked.user.scope);
  if (asked.what === "add") {
    const act = async () => give(await ask("post", "/api/v1/users", { body: { name: name.trim(), role, scope: role === "admin" ? null : scope } }));
    return (
      <Sure title="Add a user" verb="Add" isGood={name.trim() !== ""} command={`evenflow users add ${quoted(name.trim() || "NAME")} --role ${role} ${role === "admin" ? "" : options}`.trim()} act={act} close={close}>
        <Field id="name" label="Name" value={name} change={setName} />
        <RoleField role={role} change={setRole} />
        {role === "admin" ? <p className="quiet">An admin's role counts everywhere.</p> : fields}
        <p className="quiet">A password is made, and shown once.</p>
      </Sure>
    );
  }
  const { user, what } = asked;
  const names = { name: user.name };
  const typed = quoted(user.name);
  switch (what) {
    case "role":
      return (
        <Sure
          title={`What ${user.name} may`}
          verb="Change it"
          isGood={role !== user.role}
          command={`evenflow users set-role ${typed} ${role}`}
          act={() => ask("patch", "/api/v1/users/{name}", { names, body: { role } })}
          close={close}
        >
          <RoleField role={role} change={setRole} />
          <p className="quiet">It holds at once, also where {user.name} is logged in.</p>
        </Sure>
      );
    case "scope":
      return (
        <Sure
          title={`Where the role of ${user.name} counts`}
          verb="Change it"
          command={`evenflow users set-scope ${typed} ${options || "--everywhere"}`}
          act={() => ask("patch", "/api/v1/users/{name}", { names, body: { scope } })}
          close={close}
        >
          {fields}
          <p className="quiet">It holds at once, also where {user.name} is logged in.</p>
        </Sure>
      );
    case "password":
      return (
        <Sure
          title={`Another password for ${user.name}`}
          verb="Make one"
          command={`evenflow users set-password ${typed}`}
          act={async () => give(await ask("put", "/api/v1/users/{name}/password", { names, body: {} }))}
          close={close}
        >
          <p>{user.name} is logged out everywhere, and the password of now is good for nothing.</p>
        </Sure>
      );
    case "disable":
    case "enable":
      return (
        <Sure
          title={what === "disable" ? `Disable ${user.name}` : `Enable ${user.name}`}
          verb={what === "disable" ? "Disable" : "Enable"}
          danger={what === "disable"}
          command={`evenflow users ${what} ${typed}`}
          act={() => ask("patch", "/api/v1/users/{name}", { names, body: { is_disabled: what === "disable" } })}
          close={close}
        >
          <p>{what === "disable" ? `${user.name} is logged out everywhere, and cannot log in.` : `${user.name} may log in again, with the role ${user.role}.`}</p>
        </Sure>
      );
  }
}
