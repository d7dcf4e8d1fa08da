import { expect, test } from "vitest";
import { ofWhich, setCommand, type Rule } from "./rules";

const RULE: Rule = { event: "task_failed", notifier: "slack", conn_id: "on_call" };

test("a rule is of the DAGs that it names, else of all", () => {
  expect(ofWhich({ dags: ["a", "b"], scope: { tags: ["etl"], bundles: [] } })).toBe("a, b; tags etl");
  expect(ofWhich({})).toBe("");
});

test("the command makes the same rule", () => {
  expect(setCommand("", { ...RULE, conn_id: "" })).toBe("evenflow notifications set NAME --on task_failed --by slack --connection CONNECTION");
  expect(setCommand("on call", { ...RULE, dags: ["orders"], scope: { tags: ["etl"] }, is_enabled: false })).toBe(
    "evenflow notifications set 'on call' --on task_failed --by slack --connection on_call --dag orders --tag etl --off",
  );
  expect(setCommand("m", { ...RULE, notifier: "email", recipients: ["a@x.org"] })).toMatch(/--to a@x.org$/);
});
