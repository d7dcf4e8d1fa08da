import "@xyflow/react/dist/base.css";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { useMemo, useState } from "react";
import type { Schemas } from "../api/client";
import { dagQuery, runsQuery, taskCountsQuery } from "../api/queries";
import { placed, widthOf } from "../parts/layout";
import { Empty, Found } from "../parts/parts";
import { StateMark, stateWord, worst } from "../parts/states";
import { count, counted } from "../parts/words";
import { around, countsOf, groupOf, shapeOf, SHOWN_OPEN, type Box, type Counts, type Frame, type Shape } from "./shape";

const RUNS = 50; // to choose from
const MOST_BOXES = 1_000; // above this a picture shows nothing, and its layout takes long
const SUGGESTED = 20; // tasks, while one types
const HEIGHT = 40;
const COUNT = 72; // pixels that "1,000/1,000" takes
const DONE = ["success", "failed", "skipped", "upstream_failed", "removed"];

export function GraphTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const { run } = useSearch({ from: "/dags/$dagId/graph" });
  const dag = useQuery(dagQuery(dagId));
  const runs = useQuery(runsQuery({ dag_id: dagId, limit: RUNS }));
  const known = runs.data?.items ?? [];
  const chosen = known.find((one) => one.run_id === run) ?? known[0];
  return <Found of={dag}>{(found) => <Graph dag={found} runs={known} isLooking={runs.isLoading} run={chosen?.run_id ?? null} />}</Found>;
}

function Graph({ dag, runs, isLooking, run }: { dag: Schemas["DagDetail"]; runs: Schemas["RunSummary"][]; isLooking: boolean; run: string | null }) {
  const { open, around: middle } = useSearch({ from: "/dags/$dagId/graph" });
  const navigate = useNavigate({ from: "/dags/$dagId/graph" });
  const counts = useQuery({ ...taskCountsQuery(dag.dag_id, run ?? ""), enabled: run !== null });
  const all = useMemo(() => dag.groups.map((group) => group.group_id), [dag.groups]);
  const opened = useMemo(() => new Set(open ?? (dag.tasks.length <= SHOWN_OPEN || middle ? all : [])), [open, all, dag.tasks.length, middle]);
  const shape = useMemo(
    () => shapeOf(middle ? around(dag.tasks, middle) : dag.tasks, dag.groups, opened),
    [dag.tasks, dag.groups, opened, middle], // an answer that is as before keeps the tasks that were there
  );
  const show = (groups: string[]) => void navigate({ search: (before) => ({ ...before, open: groups }), replace: true });
  return (
    <>
      <div className="choose" aria-busy={isLooking || counts.isLoading}>
        <label htmlFor="graph-run">States of run</label>
        <select id="graph-run" value={run ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, run: event.target.value }), replace: true })}>
          {runs.map((one) => (
            <option key={one.run_id} value={one.run_id}>
              {one.run_id} ({stateWord(one.state)})
            </option>
          ))}
          {!runs.length && <option value="">none yet</option>}
        </select>
        <Around
          key={middle}
          tasks={dag.tasks}
          shown={middle}
          choose={(task) => void navigate({ search: ({ open: _, ...before }) => ({ ...before, around: task }), replace: true })}
        />
        {all.length > 0 && (
          <button type="button" onClick={() => show(opened.size ? [] : all)}>
            {opened.size ? "Close all groups" : "Open all groups"}
          </button>
        )}
      </div>
      {shape.boxes.length > MOST_BOXES ? (
        <Empty title={`A picture of ${count(shape.boxes.length)} boxes shows nothing.`}>
          Name a task above to see what is around it{opened.size ? ", or close groups" : ""}. The grid lists all tasks.
        </Empty>
      ) : (
        <Picture
          key={middle}
          dagId={dag.dag_id}
          shape={shape}
          counts={(run !== null && counts.data?.tasks) || null}
          run={run}
          turn={(group) => show(opened.has(group) ? [...opened].filter((one) => one !== group) : [...opened, group])}
        />
      )}
    </>
  );
}

/** A task by name: of a large DAG what is around it is what can be seen. */
function Around({ tasks, shown, choose }: { tasks: Schemas["DagTask"][]; shown?: string; choose: (task: string | undefined) => void }) {
  const [typed, setTyped] = useState(shown ?? "");
  const like = tasks.filter((task) => typed && task.task_id.includes(typed)).slice(0, SUGGESTED);
  const isTask = (name: string) => tasks.some((task) => task.task_id === name);
  return (
    <>
      <label htmlFor="graph-around">Around task</label>
      <input
        id="graph-around"
        type="search"
        list="graph-tasks"
        placeholder="all tasks"
        value={typed}
        aria-invalid={typed !== "" && like.length === 0}
        onChange={({ target: { value }, nativeEvent }) => {
          setTyped(value);
          if (!value) choose(undefined);
          else if (isTask(value) && !isTyping(nativeEvent)) choose(value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && like[0]) choose(isTask(typed) ? typed : like[0].task_id);
        }}
      />
      <datalist id="graph-tasks">
        {like.map((task) => (
          <option key={task.task_id} value={task.task_id} />
        ))}
      </datalist>
    </>
  );
}

/** Not so when a suggestion is taken. */
const isTyping = (event: Event) => event instanceof InputEvent && event.inputType !== "insertReplacementText";

type BoxNode = Node<{ box: Box; counts: Counts | null; dagId: string; run: string | null; turn: (group: string) => void }, "box">;
type FrameNode = Node<{ frame: Frame; turn: (group: string) => void }, "frame">;

function Picture({ dagId, shape, counts, run, turn }: { dagId: string; shape: Shape; counts: Record<string, Counts> | null; run: string | null; turn: (group: string) => void }) {
  const places = useMemo(
    () => placed(shape.boxes.map((box) => ({ id: box.id, frame: box.frame, width: widthOf(box.name) + (isMany(box) ? COUNT : 0), height: HEIGHT })), shape.edges, shape.frames),
    [shape],
  );
  const spot = (id: string) => {
    const { x, y, width, height } = places.get(id)!;
    return { id, position: { x, y }, width, height };
  };
  const nodes: (BoxNode | FrameNode)[] = [
    ...shape.frames.map((frame): FrameNode => ({ ...spot(frame.id), type: "frame", zIndex: -1, data: { frame, turn } })),
    ...shape.boxes.map((box): BoxNode => ({ ...spot(box.id), type: "box", data: { box, counts: counts && countsOf(box, counts), dagId, run, turn } })),
  ];
  const edges: Edge[] = shape.edges.map(([source, target]) => ({ id: JSON.stringify([source, target]), source, target, focusable: false }));
  return (
    <div className="graph">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.1 }}
        minZoom={0.05}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        elementsSelectable={false}
        onlyRenderVisibleElements={nodes.length > 200}
        proOptions={{ hideAttribution: true }}
        aria-label={`Graph of ${dagId}`}
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

const isMany = (box: Box) => box.kind === "group" || box.tasks[0]!.mapped;
const sumOf = (counts: Counts, states = Object.keys(counts)) => states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);

function BoxOfGraph({ data: { box, counts, dagId, run, turn } }: NodeProps<BoxNode>) {
  const state = counts && worst(Object.keys(counts));
  const what = box.kind === "group" ? `group of ${counted(box.tasks.length, "task")}` : box.tasks[0]!.operator;
  const stand = counts && Object.entries(counts).map(([one, n]) => (isMany(box) ? `${count(n)} ${stateWord(one)}` : stateWord(one)));
  const told = `${box.kind === "group" ? groupOf(box.id) : box.id}, ${what}${stand ? `: ${stand.join(", ")}` : ""}`;
  const inside = (
    <>
      {state && <StateMark state={state} />}
      <span className="ellipsis">{box.name}</span>
      {isMany(box) && (
        <span className="quiet number spread-left">{counts ? `${count(sumOf(counts, DONE))}/${count(sumOf(counts))}` : box.kind === "group" ? count(box.tasks.length) : "[ ]"}</span>
      )}
    </>
  );
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {box.kind === "group" ? (
        <button type="button" className={`node many n-${state ?? "none"}`} title={told} aria-expanded={false} onClick={() => turn(groupOf(box.id))}>
          {inside}
        </button>
      ) : run && state ? (
        <Link className={`node n-${state}`} to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId: run, taskId: box.id }} preload={false} title={told}>
          {inside}
        </Link>
      ) : (
        <span className="node" title={told}>
          {inside}
        </span>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}

const FrameOfGraph = ({ data: { frame, turn } }: NodeProps<FrameNode>) => (
  <div className="frame">
    <button type="button" className="bare" aria-expanded title={`Close the group ${groupOf(frame.id)}`} onClick={() => turn(groupOf(frame.id))}>
      {frame.name}
    </button>
  </div>
);

const TYPES = { box: BoxOfGraph, frame: FrameOfGraph };
