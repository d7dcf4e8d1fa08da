import { expect, test } from "vitest";
import { LogLines, spansOf } from "./lines";

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

test("moves and colours of terminals are no part of a line, and of a line that was written over the last state stays", () => {
  const log = new LogLines();
  log.add("\u001b[31mred\u001b[0m\n10 %\r50 %\r100 %\nwindows\r\n", true);
  expect(log.lines).toEqual(["red", "100 %", "windows"]);
});

test("colours are kept beside the line, and searched words go across them", () => {
  const log = new LogLines();
  log.add("a \u001b[1;31mred wo\u001b[0mrd\n", true);
  expect(spansOf(log.lines[0]!, log.coloured.get(0), "")).toEqual([
    { text: "a ", look: "", found: false },
    { text: "red wo", look: "ansi-red ansi-bold", found: false },
    { text: "rd", look: "", found: false },
  ]);
  expect(spansOf(log.lines[0]!, log.coloured.get(0), "WORD").map(({ text, found }) => [text, found])).toEqual([
    ["a ", false],
    ["red ", false],
    ["wo", true],
    ["rd", true],
  ]);
});

test("what is searched for is found in lines that come later", () => {
  const log = new LogLines();
  log.add("one\ntwo\n", false);
  expect(log.with("o")).toEqual([0, 1]);
  log.add("three\nfour ERROR\n", false);
  expect([log.with("o"), log.with("E"), log.with(""), log.errors, log.widest]).toEqual([[0, 1, 3], [0, 2, 3], [], [3], 10]);
});

test("of a log whose beginning is not read the first line is not whole", () => {
  const log = new LogLines(100);
  log.add("rest of a line", false);
  log.add(", still\nwhole\n", true);
  expect(log.lines).toEqual(["whole"]);
});
