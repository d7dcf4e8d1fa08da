// Which boxes a graph has: tasks, and groups of them that are shut (one box) or open (a frame around what is in it).
import type { Schemas } from "../api/client";

export type Task = Schemas["DagTask"];
export type Group = Schemas["DagGroup"];
export type Counts = Record<string, number>; // instances by state

export interface Box {
  id: string;
  name: string;
  kind: "task" | "group";
  frame: string | null; // the open group that it is in
  tasks: Task[]; // of a task: itself
}
export interface Shape {
  boxes: Box[];
  frames: Frame[];
  edges: [string, string][];
}
export interface Frame {
  id: string;
  name: string;
  frame: string | null;
}

const NEAR = 2; // edges to what is around a task
export const SHOWN_OPEN = 60; // tasks of a DAG whose groups are open when the page is
const ofGroup = (id: string) => `group ${id}`; // a task may have the same name

/** The groups of each task, the outermost first. */
function chains(groups: Group[]): Map<string | null, string[]> {
  const found = new Map<string | null, string[]>([[null, []]]);
  for (const { group_id, group } of groups) found.set(group_id, [...(found.get(group) ?? []), group_id]);
  return found;
}

/** `open` are the groups whose tasks are seen, if those around them are open too. */
export function shapeOf(tasks: Task[], groups: Group[], open: ReadonlySet<string>): Shape {
  const chain = chains(groups);
  const boxes = new Map<string, Box>();
  const boxOf = new Map<string, string>(); // by task
  const framed = new Set<string>();
  for (const task of tasks) {
    const around = chain.get(task.group) ?? [];
    const shut = around.findIndex((group) => !open.has(group));
    const seen = shut < 0 ? around : around.slice(0, shut);
    for (const group of seen) framed.add(group);
    const group = shut < 0 ? undefined : around[shut]!;
    const id = group === undefined ? task.task_id : ofGroup(group);
    const frame = seen.at(-1) ?? null;
    boxOf.set(task.task_id, id);
    const known = boxes.get(id);
    if (known) known.tasks.push(task);
    else {
      const name = group === undefined ? (task.display_name === task.task_id ? within(task.task_id, frame) : task.display_name) : within(group, frame);
      boxes.set(id, { id, name, kind: group === undefined ? "task" : "group", frame: frame && ofGroup(frame), tasks: [task] });
    }
  }
  const edges = new Map<string, [string, string]>();
  for (const task of tasks)
    for (const upstream of task.upstream) {
      const [from, to] = [boxOf.get(upstream), boxOf.get(task.task_id)!];
      if (from !== undefined && from !== to) edges.set(JSON.stringify([from, to]), [from, to]);
    }
  const frames = groups
    .filter(({ group_id }) => framed.has(group_id))
    .map(({ group_id, group }) => ({ id: ofGroup(group_id), name: within(group_id, group), frame: group && ofGroup(group) }));
  return { boxes: [...boxes.values()], frames, edges: [...edges.values()] };
}

/** An id without the name of the group that it is in, which stands above it. */
const within = (id: string, group: string | null) => (group !== null && id.startsWith(`${group}.`) ? id.slice(group.length + 1) : id);

export const groupOf = (id: string) => id.slice(ofGroup("").length);

/** The task and what is at most two edges before or behind it. */
export function around(tasks: Task[], taskId: string): Task[] {
  const behind = new Map<string, string[]>();
  for (const { task_id, upstream } of tasks) for (const one of upstream) behind.set(one, [...(behind.get(one) ?? []), task_id]);
  const before = new Map(tasks.map(({ task_id, upstream }) => [task_id, upstream]));
  const near = new Set([taskId]);
  for (const edges of [before, behind]) {
    let last = [taskId];
    for (let step = 0; step < NEAR; step++) {
      last = last.flatMap((one) => edges.get(one) ?? []);
      for (const one of last) near.add(one);
    }
  }
  return tasks.filter(({ task_id }) => near.has(task_id));
}

/** The instances of a box by state. A task of which nothing is told counts as one that nothing has touched. */
export function countsOf(box: Box, told: Record<string, Counts | undefined>): Counts {
  const sum: Counts = {};
  for (const { task_id } of box.tasks)
    for (const [state, n] of Object.entries(told[task_id] ?? { none: 1 })) sum[state] = (sum[state] ?? 0) + n;
  return sum;
}
