// Rules that say what is told to whom, without a function in a DAG file.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../api/client";
import { notificationRulesQuery, refresh } from "../api/queries";
import { useTitle } from "../app/title";
import { Allowed } from "../parts/Allowed";
import { Field } from "../parts/Field";
import { Command, Empty, Found, Switch, Trouble } from "../parts/parts";
import { Sure } from "../parts/Sure";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";
import { namesIn } from "../users/scopes";
import { EVENTS, NOTIFIERS, ofWhich, setCommand, type Rule } from "./rules";

type KeptRule = Schemas["NotificationRule"];

export function Notifications() {
  useTitle("Notifications");
  const rules = useQuery(notificationRulesQuery);
  const [isAdded, setAdded] = useState(false);
  const [deleted, setDeleted] = useState<KeptRule | null>(null);
  return (
    <div className="page">
      <div className="head">
        <h1>Notifications</h1>
        <span className="spread" />
        <Allowed to="operator">
          <button type="button" className="primary" onClick={() => setAdded(true)}>
            Add a rule
          </button>
        </Allowed>
      </div>
      <p className="quiet">What happens is told by rules: once for each event and rule, with a link to the page. Addresses and their secrets are connections.</p>
      <Found of={rules}>
        {(page) =>
          page.items.length ? (
            <Table
              label="Rules"
              rows={page.items}
              keyOf={(rule) => rule.name}
              columns={[
                { name: "On", cell: (rule) => <OnOff rule={rule} /> },
                { name: "Rule", cell: (rule) => <strong>{rule.name}</strong> },
                { name: "When", cell: (rule) => EVENTS[rule.event] ?? rule.event },
                { name: "Of", as: "wide", cell: (rule) => ofWhich(rule) || <span className="quiet">all DAGs</span> },
                { name: "By", cell: (rule) => <By rule={rule} /> },
                { name: "Changed", cell: (rule) => <><Time at={rule.changed_at} /> <span className="quiet">by {rule.changed_by}</span></> },
                {
                  name: "Delete",
                  hidden: true,
                  as: "right",
                  cell: (rule) => (
                    <Allowed to="operator">
                      <button type="button" className="danger" aria-label={`Delete the rule ${rule.name}`} onClick={() => setDeleted(rule)}>
                        Delete
                      </button>
                    </Allowed>
                  ),
                },
              ]}
            />
          ) : (
            <Empty title="There is no rule yet.">
              <Command text="evenflow notifications set broken --on run_failed --by slack --connection slack_default" />
            </Empty>
          )
        }
      </Found>
      {isAdded && <Add close={() => setAdded(false)} />}
      {deleted && (
        <Sure
          title={`Delete the rule ${deleted.name}`}
          verb="Delete it"
          danger
          command={`evenflow notifications delete ${quoted(deleted.name)}`}
          act={() => ask("delete", "/api/v1/notification-rules/{name}", { names: { name: deleted.name } })}
          close={() => setDeleted(null)}
        >
          <p>Nothing is told by it any more. What it has begun to tell is told.</p>
        </Sure>
      )}
    </div>
  );
}

const By = ({ rule }: { rule: KeptRule }) => (
  <>
    {NOTIFIERS[rule.notifier]?.name ?? rule.notifier} <span className="quiet">{rule.conn_id}{rule.recipients?.length ? ` to ${rule.recipients.join(", ")}` : ""}</span>
  </>
);

function OnOff({ rule }: { rule: KeptRule }) {
  const client = useQueryClient();
  const { name, changed_at: _at, changed_by: _by, ...kept } = rule;
  const change = useMutation({
    mutationFn: (is_enabled: boolean) => ask("put", "/api/v1/notification-rules/{name}", { names: { name }, body: { ...kept, is_enabled } }),
    onSuccess: () => refresh(client),
  });
  return (
    <Allowed to="operator">
      <Switch on={rule.is_enabled !== false} label={`Tell by the rule ${name}`} busy={change.isPending} change={(on) => change.mutate(on)} />
      {change.error && <Trouble error={change.error} />}
    </Allowed>
  );
}

function Add({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [event, setEvent] = useState<Rule["event"]>("run_failed");
  const [notifier, setNotifier] = useState<Rule["notifier"]>("slack");
  const [typed, setTyped] = useState({ connection: "", dags: "", tags: "", bundles: "", to: "", key: "" });
  const field = (of: keyof typeof typed, label: string, placeholder: string) => (
    <Field id={of} label={label} value={typed[of]} change={(text) => setTyped({ ...typed, [of]: text })} placeholder={placeholder} spellCheck={false} />
  );
  const [tags, bundles] = [namesIn(typed.tags), namesIn(typed.bundles)];
  const rule: Rule = {
    event,
    notifier,
    conn_id: typed.connection.trim() || NOTIFIERS[notifier].connection,
    dags: namesIn(typed.dags),
    scope: tags.length || bundles.length ? { tags, bundles } : null,
    recipients: notifier === "email" ? namesIn(typed.to) : [],
    signed_by: (notifier === "webhook" && typed.key.trim()) || null,
  };
  return (
    <Sure
      title="Add a rule"
      verb="Add"
      isGood={name.trim() !== "" && (notifier !== "email" || typed.to.trim() !== "")}
      command={setCommand(name.trim(), rule)}
      act={() => ask("put", "/api/v1/notification-rules/{name}", { names: { name: name.trim() }, body: rule })}
      close={close}
    >
      <Field id="name" label="Name" value={name} change={setName} placeholder="on call" />
      <label htmlFor="event">Tell when</label>
      <select id="event" value={event} onChange={(change) => setEvent(change.target.value as Rule["event"])}>
        {Object.entries(EVENTS).map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
      <label htmlFor="notifier">By</label>
      <select id="notifier" value={notifier} onChange={(change) => setNotifier(change.target.value as Rule["notifier"])}>
        {Object.entries(NOTIFIERS).map(([one, { name: words }]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
      {field("connection", "Connection", NOTIFIERS[notifier].connection)}
      {notifier === "email" && field("to", "To", "data@example.com")}
      {notifier === "webhook" && field("key", "Signed by the connection", "not signed")}
      {field("dags", "DAGs (with commas)", "all")}
      {field("tags", "DAGs with a tag", "all")}
      {field("bundles", "DAGs of a bundle", "all")}
    </Sure>
  );
}
