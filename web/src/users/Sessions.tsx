// Where one is logged in, in browsers and by `evenflow login`, and for admins where everybody is; and one's own password.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { refresh, sessionQuery, sessionsQuery } from "../api/queries";
import { PASSWORD_LEAST } from "../api/words";
import { useTitle } from "../app/title";
import { allows } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { usePages } from "../parts/paging";
import { Empty, Found, Section, Trouble } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { browserName } from "./browsers";
import { Where } from "./Scope";

const PAGE = 100;
type Summary = Schemas["SessionSummary"];

export function Sessions() {
  useTitle("Sessions");
  const { from, pages } = usePages("Newest", "Older");
  const [ended, setEnded] = useState<Summary | null>(null);
  const session = useQuery(sessionQuery);
  const sessions = useQuery(sessionsQuery({ ...from, limit: PAGE }));
  const isAdmin = session.data !== undefined && allows(session.data.role, "admin");
  return (
    <div className="page">
      <h1>Sessions</h1>
      {session.data && (
        <p className="quiet">
          You are {session.data.name}, with the role {session.data.role}. {isAdmin ? "You see where everybody is logged in." : "You see where you are logged in."}
        </p>
      )}
      <Section title="Logged in">
        <p className="quiet">
          To log a command line in, type <code>evenflow login</code> there, and <Link to="/device">its code here</Link>.
        </p>
        <Found of={sessions}>
          {(page) =>
            page.items.length || from.cursor ? (
              <>
                <Table
                  label="Sessions"
                  rows={page.items}
                  keyOf={(one) => String(one.session_id)}
                  columns={[
                    { name: "Who", cell: (one) => <strong>{one.name}</strong> },
                    { name: "Browser or machine", as: "wide", cell: (one) => <Browser of={one} /> },
                    { name: "Role", cell: (one) => one.role ?? <span className="quiet">none</span> },
                    { name: "Where", cell: (one) => <Where of={one.scope} /> },
                    { name: "From", cell: (one) => one.address ?? <span className="quiet">–</span> },
                    { name: "Began", cell: (one) => <Time at={one.began_at} /> },
                    { name: "Until", cell: (one) => <Time at={one.expires_at} as="moment" /> },
                    {
                      name: "End",
                      hidden: true,
                      as: "right",
                      cell: (one) =>
                        one.is_this ? (
                          <span className="quiet">this one</span>
                        ) : (
                          <button type="button" className="danger" aria-label={`Log out session ${one.session_id} of ${one.name}`} onClick={() => setEnded(one)}>
                            Log out
                          </button>
                        ),
                    },
                  ]}
                />
                {pages(page.next)}
              </>
            ) : (
              <Empty title="Nobody is logged in." />
            )
          }
        </Found>
      </Section>
      {session.data?.by_password && <Password name={session.data.name} />}
      {ended && (
        <Sure
          title={`Log out ${ended.name}`}
          verb="Log out"
          danger
          command={`evenflow sessions end ${ended.session_id}`}
          act={() => ask("delete", "/api/v1/sessions/{session_id}", { names: { session_id: String(ended.session_id) } })}
          close={() => setEnded(null)}
        >
          <p>In {ended.by_command ? `the command line of ${ended.agent}` : browserName(ended.agent)}, from {ended.address ?? "somewhere"}. What was begun there goes on.</p>
        </Sure>
      )}
    </div>
  );
}

const Browser = ({ of }: { of: Summary }) => (
  <span title={of.agent ?? ""}>
    {of.by_command ? `the command line of ${of.agent}` : browserName(of.agent)} {!of.by_password && <span className="quiet">by a token</span>}
  </span>
);

function Password({ name }: { name: string }) {
  const [old, setOld] = useState("");
  const [fresh, setFresh] = useState("");
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: () => ask("put", "/api/v1/session/password", { body: { old, new: fresh } }),
    onSuccess: async () => {
      setOld("");
      setFresh("");
      await refresh(client);
    },
  });
  return (
    <Section title="Your password">
      <form
        className="narrow"
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate();
        }}
      >
        <input type="text" autoComplete="username" value={name} readOnly hidden />
        <Field id="old" label="The one of now" value={old} change={setOld} type="password" autoComplete="current-password" />
        <Field id="fresh" label="Another one" hint={`at least ${PASSWORD_LEAST} characters`} value={fresh} change={setFresh} type="password" autoComplete="new-password" />
        <footer>
          <button type="submit" className="primary" disabled={!old || fresh.length < PASSWORD_LEAST || change.isPending}>
            Change it
          </button>
        </footer>
        {change.isSuccess && <p role="status">It is changed, and you are logged out everywhere else.</p>}
        {change.error && <Trouble error={change.error} />}
      </form>
    </Section>
  );
}
