import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
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

/** Boxes for a question that takes several answers, in the order of the question. */
function Several({ choices, chosen, choose, children }: { choices: string[]; chosen: string[]; choose: (to: string[]) => void; children: ReactNode }) {
  return (
    <fieldset className="answers">
      <legend className="visually-hidden">Answers</legend>
      {choices.map((choice) => (
        <label key={choice} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(choice)}
            onChange={(event) => choose(choices.filter((each) => (each === choice ? event.target.checked : chosen.includes(each))))}
          />{" "}
          {choice}
        </label>
      ))}
      {children}
    </fieldset>
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
  const [chosen, setChosen] = useState<string[]>(Array.isArray(asked.default) ? asked.default : []);
  const client = useQueryClient();
  const answer = useMutation({
    mutationFn: (choice: string | string[]) =>
      ask("post", "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/answer", { names: namesOf(of), body: { choice, values: given, map_index: of.map } }),
    onSettled: () => refresh(client),
  });
  const mayAnswer = asked.may_answer && isGood && !answer.isPending;
  const command = [
    "evenflow approve",
    quoted(`${of.dagId}/${of.runId}`),
    quoted(of.taskId),
    ...(asked.multiple ? chosen : [asked.choices.includes("approve") ? "approve" : (asked.choices[0] ?? "")]).map(quoted),
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
          Until <Time at={asked.until} as="moment" />; then {asked.default === null ? "it fails" : `the answer is ${[asked.default].flat().join(", ")}`}.
        </p>
      )}
      {asked.multiple ? (
        <Several choices={asked.choices} chosen={chosen} choose={setChosen}>
          <button type="button" className="primary" disabled={!mayAnswer || !chosen.length} onClick={() => answer.mutate(chosen)}>
            Answer
          </button>
        </Several>
      ) : (
        <p className="answers">
          {asked.choices.map((choice, at) => (
            <button key={choice} type="button" className={at === 0 ? "primary" : ""} disabled={!mayAnswer} onClick={() => answer.mutate(choice)}>
              {choice.charAt(0).toUpperCase() + choice.slice(1)}
            </button>
          ))}
        </p>
      )}
      <Command text={command} />
      {answer.error && <Trouble error={answer.error} />}
    </form>
  );
}
