import { expect, test } from "vitest";
import { around, countsOf, shapeOf, type Group, type Task } from "./shape";

const task = (task_id: string, upstream: string[] = [], group: string | null = null) => ({ task_id, display_name: task_id, upstream, group }) as unknown as Task;
const group = (group_id: string, around: string | null = null) => ({ group_id, group: around }) as unknown as Group;

const TASKS = [
  task("begin"),
  task("load.read", ["begin"], "load"),
  task("load.clean.a", ["load.read"], "load.clean"),
  task("load.clean.b", ["load.read"], "load.clean"),
  task("end", ["load.clean.a", "load.clean.b"]),
];
const GROUPS = [group("load"), group("load.clean", "load")];
const names = (open: string[]) => shapeOf(TASKS, GROUPS, new Set(open)).boxes.map((box) => box.name);

test("a shut group is one box, with one edge for many", () => {
  const shape = shapeOf(TASKS, GROUPS, new Set());
  expect(shape.boxes.map(({ id, kind, tasks }) => [id, kind, tasks.length])).toEqual([
    ["begin", "task", 1],
    ["group load", "group", 3],
    ["end", "task", 1],
  ]);
  expect(shape.edges).toEqual([
    ["begin", "group load"],
    ["group load", "end"],
  ]);
  expect(shape.frames).toEqual([]);
});

test("what is in an open group has a name without the group's, in a frame", () => {
  const shape = shapeOf(TASKS, GROUPS, new Set(["load"]));
  expect(shape.frames).toEqual([{ id: "group load", name: "load", frame: null }]);
  expect(shape.boxes.map(({ name, frame }) => [name, frame])).toEqual([
    ["begin", null],
    ["read", "group load"],
    ["clean", "group load"],
    ["end", null],
  ]);
  expect(names(["load", "load.clean"])).toEqual(["begin", "read", "a", "b", "end"]);
});

test("an open group in a shut one is not seen", () => expect(names(["load.clean"])).toEqual(["begin", "load", "end"]));

test("around a task are those that are two edges away", () => {
  const chain = [task("a"), task("b", ["a"]), task("c", ["b"]), task("d", ["c"]), task("e", ["d"]), task("beside", ["b"])];
  expect(around(chain, "c").map((one) => one.task_id)).toEqual(["a", "b", "c", "d", "e"]);
  expect(around(chain, "a").map((one) => one.task_id)).toEqual(["a", "b", "c", "beside"]);
});

test("a group counts the instances of its tasks, untouched ones too", () => {
  const box = shapeOf(TASKS, GROUPS, new Set()).boxes[1]!;
  expect(countsOf(box, { "load.read": { success: 1 }, "load.clean.a": { success: 7, running: 2 } })).toEqual({ success: 8, running: 2, none: 1 });
});
