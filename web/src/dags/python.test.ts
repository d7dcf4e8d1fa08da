import { expect, test } from "vitest";
import { painted } from "./python";

const kinds = (code: string) => painted(code).map((line) => line.filter((part) => part.kind).map((part) => `${part.kind}:${part.text}`));

test("words, texts, notes, numbers and marks have their colours", () => {
  expect(kinds('@task\ndef f(x=1):  # note\n    return "if"')).toEqual([
    ["mark:@task"],
    ["word:def", "number:1", "note:# note"],
    ["word:return", 'text:"if"'],
  ]);
});

test("a text of several lines has its colour in each", () => {
  expect(kinds('"""a\nif b\n"""\nif x')).toEqual([['text:"""a'], ["text:if b"], ['text:"""'], ["word:if"]]);
});

test("no letter is lost, also of code that is cut off", () => {
  for (const code of ['x = "open', "'''never closed\n if", "a\n\n  b # c\n", "f'{x}' + 1_000.5"]) {
    expect(painted(code).map((line) => line.map((part) => part.text).join("")).join("\n")).toBe(code);
  }
});
