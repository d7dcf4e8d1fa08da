import { describe, expect, test } from "vitest";
import { ago, bytes, counted, duration, firstLine, instanceName, moment, quoted, tickWords } from "./words";

describe("durations have one form", () => {
  test.each([
    [0, "0.0 s"],
    [9.94, "9.9 s"],
    [9.96, "10 s"],
    [59.6, "1 min"],
    [61, "1 min 1 s"],
    [725, "12 min"],
    [3600, "1 h"],
    [3660, "1 h 1 min"],
    [90_000, "1 d 1 h"],
    [-3, "0.0 s"],
    [null, ""],
  ])("%s", (seconds, said) => expect(duration(seconds)).toBe(said));
});

test("a moment is told from now, before and after", () => {
  const now = new Date("2026-03-01T12:00:00Z");
  expect(ago(new Date("2026-03-01T11:56:00Z"), now)).toBe("4 min ago");
  expect(ago(new Date("2026-03-01T12:04:00Z"), now)).toBe("in 4 min");
  expect(moment(now, "utc")).toBe("2026-03-01 12:00:00");
});

test("a tick of an axis says its day, or of days its year, where that is another one", () => {
  const at = (time: string) => Date.parse(`2026-03-01T${time}Z`) / 1000;
  expect(tickWords(at("12:00:05"), undefined, 5, "utc")).toBe("12:00:05\n2026-03-01");
  expect(tickWords(at("12:00:10"), at("12:00:05"), 5, "utc")).toBe("12:00:10");
  expect(tickWords(at("00:00:00"), at("00:00:00") - 3600, 3600, "utc")).toBe("00:00\n2026-03-01");
  expect(tickWords(at("00:00:00"), undefined, 86_400, "utc")).toBe("03-01\n2026");
  expect(tickWords(at("00:00:00"), at("00:00:00") - 86_400, 86_400, "utc")).toBe("03-01");
  expect(tickWords(at("00:00:00"), at("00:00:00") - 60 * 86_400, 86_400, "utc")).toBe("03-01\n2026");
});

test("bytes have the unit that leaves few digits", () => {
  expect([0, 12, 1023, 1024, 1_500_000, 150 * 2 ** 20, 3 * 2 ** 50].map(bytes)).toEqual(["0", "12 B", "1023 B", "1.0 KiB", "1.4 MiB", "150 MiB", "3,072 TiB"]);
});

test("numbers have their noun", () => {
  expect([counted(1, "task"), counted(1234, "task"), counted(2, "thing needs", "things need")]).toEqual(["1 task", "1,234 tasks", "2 things need"]);
});

test("an instance has its index, and a task that is not mapped none", () => {
  expect([instanceName("load", -1), instanceName("load", 3)]).toEqual(["load", "load[3]"]);
});

test("a word is as a shell takes it", () => {
  expect(["plain-1.0", "two words", "it's"].map(quoted)).toEqual(["plain-1.0", "'two words'", `'it'"'"'s'`]);
});

test("the first line of nothing is empty", () => {
  expect([firstLine(null), firstLine("a\nb")]).toEqual(["", "a"]);
});
