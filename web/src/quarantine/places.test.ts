import { expect, test } from "vitest";
import { placeOf, whatIs } from "./places";

test("a run is known by its DAG and its name, the others by their DAG", () => {
  expect(placeOf("run", "orders/morning 4")).toEqual({ dagId: "orders", runId: "morning 4" });
  expect(placeOf("schedule", "orders")).toEqual({ dagId: "orders" });
  expect(placeOf("backfill", "7")).toEqual({});
});

test("a kind that is new to the page is told as it is", () => {
  expect([whatIs("assets"), whatIs("deadline")]).toEqual(["the runs that assets would make", "deadline"]);
});
