import type { Schemas } from "../api/client";
import { quoted } from "../parts/words";

export type Rule = Schemas["RuleChange"];
type NotifiedEvent = Rule["event"];
type NotifierKind = Rule["notifier"];

/** What a rule is for, in the words of the page. */
export const EVENTS: Record<NotifiedEvent, string> = {
  run_failed: "a run has failed",
  run_succeeded: "a run has succeeded",
  task_failed: "a task has failed after its last try",
  task_retried: "a try has failed and another follows",
  deadline_missed: "a deadline is missed",
};

/** How it is told, and the connection that one would have for it. */
export const NOTIFIERS: Record<NotifierKind, { name: string; connection: string }> = {
  slack: { name: "Slack", connection: "slack_default" },
  teams: { name: "Teams", connection: "teams_default" },
  pagerduty: { name: "PagerDuty", connection: "pagerduty_default" },
  webhook: { name: "a webhook", connection: "hook" },
  email: { name: "mail", connection: "smtp_default" },
};

/** Of which DAGs; nothing for all. */
export const ofWhich = ({ dags = [], scope }: Pick<Rule, "dags" | "scope">): string =>
  [dags.join(", "), scope?.tags?.length ? `tags ${scope.tags.join(", ")}` : "", scope?.bundles?.length ? `bundles ${scope.bundles.join(", ")}` : ""].filter(Boolean).join("; ");

/** The command that makes the same rule. */
export function setCommand(name: string, rule: Rule): string {
  const each = (option: string, names: readonly string[] | undefined) => (names ?? []).map((one) => `${option} ${quoted(one)}`);
  return [
    `evenflow notifications set ${quoted(name || "NAME")} --on ${rule.event} --by ${rule.notifier} --connection ${quoted(rule.conn_id || "CONNECTION")}`,
    ...each("--dag", rule.dags),
    ...each("--tag", rule.scope?.tags),
    ...each("--bundle", rule.scope?.bundles),
    ...each("--to", rule.recipients),
    ...each("--signed-by", rule.signed_by ? [rule.signed_by] : []),
    ...(rule.is_enabled === false ? ["--off"] : []),
  ].join(" ");
}
