import { expect, test } from "vitest";
import { columnsOf, tasksOf, windowsOf, type GridAnswer } from "./windows";

const grid = (tasks: string[], states: Record<string, number[]>): GridAnswer =>
  ({ tasks, total: 1, more: false, runs: [{ run_id: "one", state: "success", states }] }) as unknown as GridAnswer;

test("only the windows that are looked at are asked for, and the newest", () => {
  expect(windowsOf(960, 999, 1000)).toEqual([0]);
  expect(windowsOf(0, 39, 1000)).toEqual([0, 19]);
  expect(windowsOf(480, 520, 1000)).toEqual([0, 9, 10]);
  expect(windowsOf(0, 0, 1)).toEqual([0]);
});

test("the worst state of a mapped task comes first", () => {
  const [column] = columnsOf(grid(["a", "b"], { success: [0, 1], failed: [1] }));
  expect(column!.states.get("a")).toEqual(["success"]);
  expect(column!.states.get("b")).toEqual(["failed", "success"]);
});

test("tasks that only older runs have come last", () => {
  expect(tasksOf([grid(["a", "b"], {}), grid(["a", "old", "b"], {})])).toEqual(["a", "b", "old"]);
});
