import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ask, type Schemas } from "../api/client";
import { approvalQuery, namesOf, refresh, type InstanceName } from "../api/queries";
import { useFields } from "../dags/Fields";
import { Command, Found, Trouble } from "../parts/parts";
import { Time } from "../parts/time";
import { quoted } from "../parts/words";

/** What a task asks people: its form, and a button for each answer. */
export function AskBox({ of }: { of: InstanceName }) {
  const asked = useQuery(approvalQuery(of));
  return (
    <section className="why" aria-label="What it asks">
      <Found of={asked}>{(found) => (found.problem ? <Unreadable problem={found.problem} /> : <Question key={found.asked_at} of={of} asked={found} />)}</Found>
    </section>
  );
}

/** One that nobody can read is told with why. */
function Unreadable({ problem }: { problem: string }) {
  return (
    <div className="reason-box first ask">
      <p className="sentence">What it asks cannot be read.</p>
      <p className="note">{problem}</p>
    </div>
  );
}

function Question({ of, asked }: { of: InstanceName; asked: Schemas["Approval"] }) {
  const { given, isGood, typed, fields } = useFields(asked.params);
  const client = useQueryClient();
  const answer = useMutation({
    mutationFn: (choice: string) =>
      ask("post", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/answer", { names: namesOf(of), body: { choice, values: given, map_index: of.map } }),
    onSettled: () => refresh(client),
  });
  const command = [
    "evenflow approve",
    quoted(`${of.dagId}/${of.runId}`),
    quoted(of.taskId),
    asked.choices.includes("approve") ? "approve" : quoted(asked.choices[0] ?? ""),
    ...typed.map((one) => `--param ${quoted(one)}`),
    ...(of.map < 0 ? [] : [`--map-index ${of.map}`]),
  ].join(" ");
  return (
    <form className="reason-box first ask" onSubmit={(event) => event.preventDefault()}>
      <p className="sentence">{asked.subject}</p>
      {asked.body && <p className="doc">{asked.body}</p>}
      {fields}
      {!asked.may_answer && <p className="note">Only {asked.who.join(", ")} may answer.</p>}
      {asked.until && (
        <p className="quiet">
          Until <Time at={asked.until} as="moment" />; then {asked.default === null ? "it fails" : `the answer is ${asked.default}`}.
        </p>
      )}
      <p className="answers">
        {asked.choices.map((choice, at) => (
          <button key={choice} type="button" className={at === 0 ? "primary" : ""} disabled={!asked.may_answer || !isGood || answer.isPending} onClick={() => answer.mutate(choice)}>
            {choice.charAt(0).toUpperCase() + choice.slice(1)}
          </button>
        ))}
      </p>
      <Command text={command} />
      {answer.error && <Trouble error={answer.error} />}
    </form>
  );
}
