import { expect, test } from "vitest";
import { LogLines } from "./lines";

test("a line that came in two parts is one", () => {
  const log = new LogLines();
  log.add("first\nsec", false);
  expect(log.lines).toEqual(["first"]);
  log.add("ond\n", false);
  expect(log.lines).toEqual(["first", "second"]);
});

test("the last line needs no end", () => {
  const log = new LogLines();
  log.add("only", true);
  expect([log.lines, log.complete]).toEqual([["only"], true]);
});

test("colours of terminals are left out, and of a line that was written over the last state stays", () => {
  const log = new LogLines();
  log.add("\u001b[31mred\u001b[0m\n10 %\r50 %\r100 %\nwindows\r\n", true);
  expect(log.lines).toEqual(["red", "100 %", "windows"]);
});
