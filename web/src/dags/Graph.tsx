import "@xyflow/react/dist/base.css";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import { useMemo } from "react";
import type { Schemas } from "../api/client";
import { dagQuery, gridQuery } from "../api/queries";
import { placed, widthOf } from "../parts/layout";
import { Empty, Found } from "../parts/parts";
import { StateMark, stateWord, worst } from "../parts/states";

const RUNS = 25; // to choose from
const MOST_NODES = 2_000; // above this a picture shows nothing, and its layout takes long
const HEIGHT = 40;

export function GraphTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const { run } = useSearch({ from: "/dags/$dagId/graph" });
  const navigate = useNavigate();
  const dag = useQuery(dagQuery(dagId));
  const grid = useQuery(gridQuery(dagId, RUNS));
  const chosen = grid.data?.runs.find((one) => one.run_id === run) ?? grid.data?.runs[0];
  return (
    <Found of={dag}>
      {(found) => (
        <>
          <p className="choose">
            <label htmlFor="graph-run">States of run</label>
            <select
              id="graph-run"
              value={chosen?.run_id ?? ""}
              onChange={(event) => void navigate({ to: ".", search: { run: event.target.value }, replace: true })}
            >
              {grid.data?.runs.map((one) => (
                <option key={one.run_id} value={one.run_id}>
                  {one.run_id} ({stateWord(one.state)})
                </option>
              ))}
              {!grid.data?.runs.length && <option value="">none yet</option>}
            </select>
          </p>
          {found.tasks.length > MOST_NODES ? (
            <Empty title={`A picture of ${found.tasks.length.toLocaleString("en-US")} tasks shows nothing.`}>The grid lists all of them.</Empty>
          ) : (
            <Picture dagId={dagId} tasks={found.tasks} tasksOfGrid={grid.data?.tasks ?? []} run={chosen} />
          )}
        </>
      )}
    </Found>
  );
}

type Task = Schemas["DagTask"];
type TaskNode = Node<{ task: Task; state: string | null; dagId: string; runId: string | null }, "task">;

function Picture({ dagId, tasks, tasksOfGrid, run }: { dagId: string; tasks: Task[]; tasksOfGrid: string[]; run?: Schemas["GridRun"] }) {
  const shape = JSON.stringify(tasks.map((task) => [task.task_id, task.upstream]));
  const places = useMemo(() => laidOut(tasks), [shape]); // laid out anew for another version only
  const states = useMemo(() => {
    const found = new Map<string, string[]>();
    for (const [state, indexes] of Object.entries(run?.states ?? {})) {
      for (const index of indexes ?? []) {
        const task = tasksOfGrid[index];
        if (task !== undefined) found.set(task, [...(found.get(task) ?? []), state]);
      }
    }
    return found;
  }, [run, tasksOfGrid]);
  const nodes: TaskNode[] = tasks.map((task) => {
    const of = states.get(task.task_id);
    return {
      id: task.task_id,
      type: "task",
      position: places.get(task.task_id) ?? { x: 0, y: 0 },
      width: widthOf(nameOf(task)),
      height: HEIGHT,
      data: { task, state: of ? worst(of) : run ? "none" : null, dagId, runId: run?.run_id ?? null },
    };
  });
  const edges: Edge[] = tasks.flatMap((task) =>
    task.upstream.map((upstream) => ({ id: `${upstream} ${task.task_id}`, source: upstream, target: task.task_id, focusable: false })),
  );
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
        onlyRenderVisibleElements={tasks.length > 200}
        proOptions={{ hideAttribution: true }}
        aria-label={`Graph of ${dagId}`}
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}

const nameOf = (task: Task) => (task.mapped ? `${task.display_name} [ ]` : task.display_name);
const laidOut = (tasks: Task[]) =>
  placed(
    tasks.map((task) => ({ id: task.task_id, width: widthOf(nameOf(task)), height: HEIGHT })),
    tasks.flatMap((task) => task.upstream.map((upstream): [string, string] => [upstream, task.task_id])),
  );

function TaskBox({ data: { task, state, dagId, runId } }: NodeProps<TaskNode>) {
  const inside = (
    <>
      {state && <StateMark state={state} />}
      <span className="ellipsis">{nameOf(task)}</span>
    </>
  );
  const told = `${task.task_id}, ${task.operator}${state ? `: ${stateWord(state)}` : ""}`;
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {runId && state ? (
        <Link className={`node n-${state}`} to="/dags/$dagId/runs/$runId/tasks/$taskId" params={{ dagId, runId, taskId: task.task_id }} preload={false} title={told}>
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

const TYPES = { task: TaskBox };
