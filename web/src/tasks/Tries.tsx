// Each try of a task instance with its segments: what it waited for, where a process of it ran, how long, and how that ended.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Schemas } from "../api/client";
import { triesQuery, type InstanceName } from "../api/queries";
import { Empty, Found } from "../parts/parts";
import { StateMark, StateName, stateWord } from "../parts/states";
import { Table } from "../parts/Table";
import { Time, Took } from "../parts/time";
import { count, duration } from "../parts/words";

type Segment = Required<Schemas["TrySegment"]>;
type Try = Required<Omit<Schemas["TaskTry"], "segments">> & { segments: Segment[] };

export function Tries({ of }: { of: InstanceName }) {
  const told = useQuery(triesQuery(of));
  return (
    <Found of={told}>
      {(found) =>
        found.tries.length ? (
          <>
            {found.is_cut && <p className="quiet">It has had more tries than are told: the first ones are left out.</p>}
            {[...found.tries].reverse().map((one) => (
              <OfTry key={one.try_number} of={one as Try} />
            ))}
          </>
        ) : (
          <Empty title="It has had no try yet.">What it waits for stands above; its tries will be here, each with its waits and its log.</Empty>
        )
      }
    </Found>
  );
}

// What ended a segment; moves that have no words here are told by their names.
const THEN: Record<string, string> = {
  ready: "could start",
  grant: "sent to a worker",
  start: "began",
  succeed: "succeeded",
  fail: "failed",
  retry: "failed, with a try left",
  skip: "skipped",
  requeue: "sent again",
  elsewhere: "sent to its other queue",
  defer: "waits for a trigger",
  resume: "resumed",
  ordinary_resume: "resumes in its turn",
  reschedule: "looks again later",
  cancel: "cancelled",
  clear: "cleared",
  mark_success: "marked success",
  mark_failed: "marked failed",
  mark_skipped: "marked skipped",
};

/** What a segment is, in a word. */
export const segmentWord = (of: Pick<Segment, "state" | "begun_by">) => (of.state === "running" && of.begun_by === "resume" ? "resumed" : stateWord(of.state));

function OfTry({ of }: { of: Try }) {
  const name = `Try ${count(of.try_number)}`;
  return (
    <section className="try" aria-label={name}>
      <header>
        <h2>{name}</h2>
        <StateName state={of.ended_at && of.state === "up_for_retry" ? "failed" : of.state} />
        <span className="quiet number">
          ran {duration(of.ran_s)}, waited {duration(of.waited_s)}
        </span>
        {of.segments.some((part) => part.state === "running") && (
          <Link to="." search={(before) => ({ ...before, tab: undefined, try: of.try_number })} className="try-log" aria-label={`Log of try ${of.try_number}`}>
            Log
          </Link>
        )}
      </header>
      {of.reason && <p className="reason">{of.reason}</p>}
      <Stretch of={of.segments} label={`How ${name.toLowerCase()} went`} />
      <Table
        label={`Segments of try ${of.try_number}`}
        rows={of.segments.map((part, at) => ({ part, at }))}
        keyOf={({ at }) => String(at)}
        columns={[
          {
            name: "Segment",
            cell: ({ part }) => (
              <span className="state">
                <StateMark state={part.state} />
                {segmentWord(part)}
              </span>
            ),
          },
          { name: "Began", cell: ({ part }) => <Time at={part.began_at} as="moment" /> },
          { name: "Took", as: "right", cell: ({ part }) => <Took seconds={part.took_s} running={!part.ended_at} /> },
          { name: "Worker", as: "name", cell: ({ part }) => part.worker },
          { name: "Then", as: "name", cell: ({ part }) => (part.ended_by && (THEN[part.ended_by] ?? part.ended_by.replaceAll("_", " "))) || <span className="live">so far</span> },
          { name: "Why", as: "widest", cell: ({ part }) => (part.reason === of.reason ? null : part.reason) ?? (part.trigger && <span className="quiet">waits for {part.trigger}</span>) },
        ]}
      />
    </section>
  );
}

/** The segments one after the other, each as long as it took. */
function Stretch({ of, label }: { of: Segment[]; label: string }) {
  const all = Math.max(0.001, of.reduce((sum, part) => sum + part.took_s, 0));
  return (
    <div className="stretch" role="img" aria-label={`${label}: ${of.map((part) => `${segmentWord(part)} ${duration(part.took_s)}`).join(", ")}`}>
      {of.map((part, at) => (
        <span key={at} className={part.state === "running" ? `bar s-${part.state}` : `bar waits s-${part.state}`} style={{ flexGrow: part.took_s / all }} title={`${segmentWord(part)}, ${duration(part.took_s)}`} />
      ))}
    </div>
  );
}
