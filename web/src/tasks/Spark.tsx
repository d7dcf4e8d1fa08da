// What the stages of a try on Spark take, so far or in all, and what to change.
import { useQuery } from "@tanstack/react-query";
import { Refusal, type Schemas } from "../api/client";
import { sparkStagesQuery, type InstanceName } from "../api/queries";
import { Command, Empty, Found, Meter } from "../parts/parts";
import { Table } from "../parts/Table";
import { Time } from "../parts/time";
import { bytes, count, counted, duration } from "../parts/words";

type Stage = Required<Schemas["StageFigures"]>;

export function Spark({ of, tryNumber, active }: { of: InstanceName; tryNumber?: number; active: boolean }) {
  const told = useQuery(sparkStagesQuery(of, tryNumber, active));
  if (told.error instanceof Refusal && told.error.status === 404)
    return (
      <Empty title="No stages of Spark are told.">
        <p>{told.error.message}</p>
      </Empty>
    );
  return <Found of={told}>{(found) => <Told of={found} />}</Found>;
}

function Told({ of }: { of: Schemas["SparkStages"] }) {
  const application = of.application;
  const stages = (application.stages ?? []) as Stage[];
  const longest = Math.max(...stages.map((one) => one.wall_s));
  return (
    <>
      <dl className="facts-line">
        <div><dt>Application</dt><dd>{application.application_id}</dd></div>
        <div><dt>Cores</dt><dd className="number">{count(application.cores)}</dd></div>
        <div><dt>{of.runs ? "So far, as told" : "Told"}</dt><dd><Time at={of.at} /></dd></div>
      </dl>
      {stages.length ? (
        <Table
          label="Stages"
          rows={stages}
          keyOf={(one) => String(one.stage_id)}
          columns={[
            { name: "Stage", as: "right", cell: (one) => one.stage_id },
            { name: "What", as: "widest", cell: (one) => <What of={one} slowest={one.wall_s === longest} /> },
            { name: "Tasks", as: "meter-cell", cell: (one) => <Tasks of={one} /> },
            { name: "Time", as: "right", cell: (one) => duration(one.wall_s) },
            { name: "Longest task", as: "right", cell: (one) => duration(one.longest_task_s) },
            { name: "GC", as: "right", cell: (one) => duration(one.gc_s) },
            { name: "Read", as: "right", cell: (one) => bytes(one.input_bytes) },
            { name: "Shuffled", as: "right", cell: (one) => bytes(one.shuffle_read_bytes) },
            { name: "Spilled", as: "right", cell: (one) => bytes(one.spilled_disk_bytes) },
            { name: "Memory a task", as: "right", cell: (one) => bytes(one.peak_memory_bytes / Math.max(1, one.tasks)) },
          ]}
        />
      ) : (
        <Empty title="Spark has had no stage to do." />
      )}
      {application.left_out ? <p className="quiet">{counted(application.left_out, "more stage")} took less time than these.</p> : null}
      {of.advice.map((one, at) => (
        <div key={at} className="advice">
          <p>
            <b>Stage {one.stage_id}.</b> {one.text}
          </p>
          {Object.entries(one.conf ?? {}).map(([name, value]) => (
            <p key={name}>
              <Command text={`"${name}": "${value}"`} />
            </p>
          ))}
        </div>
      ))}
    </>
  );
}

function What({ of, slowest }: { of: Stage; slowest: boolean }) {
  return (
    <>
      {slowest ? <b title="The slowest stage">{of.name}</b> : of.name}
      {of.keys.length > 0 && <span className="quiet"> by {of.keys.join(", ")}</span>}
    </>
  );
}

function Tasks({ of }: { of: Stage }) {
  const failed = of.failed_tasks > 0 && <span className="quiet"> {count(of.failed_tasks)} failed</span>;
  return (
    <div className="metered">
      <Meter used={of.done_tasks} of={of.tasks} label={`Tasks of stage ${of.stage_id}`} calm />
      <span className="number">
        {of.done_tasks < of.tasks ? `${count(of.done_tasks)} of ${count(of.tasks)}` : count(of.tasks)}
        {failed}
      </span>
    </div>
  );
}
