// The lines of a log, as its parts arrive. What is known of all of them is kept up with each part: a log may have millions.
import Anser from "anser"; // reads colours of terminals: small, and without a document of its own

const ANSI = /\u001b\[[0-9;?]*[ -/]*[@-~]/g; // colours and moves of a terminal
const MOVES = /\u001b\[[0-9;?]*[ -/]*[@-ln-~]/g; // which a page does not have
const ERROR = /\b(Traceback|ERROR|CRITICAL|Error:|Exception)\b|^\w*(Error|Exception)\b/;

export const isError = (line: string) => ERROR.test(line);

export class LogLines {
  readonly lines: string[] = []; // without colours
  readonly coloured = new Map<number, string>(); // those that have some
  readonly errors: number[] = []; // which lines tell of one
  widest = 0; // characters
  complete = false;
  private open = ""; // a line whose end is still to come
  private sought = { words: "", upTo: 0, found: [] as number[] };

  /** `skipped` bytes of the log are not here; then the first line is not whole, and left out. */
  constructor(readonly skipped = 0) {}

  add(text: string, complete: boolean) {
    const pieces = (this.open + text).split("\n");
    this.open = pieces.pop() ?? "";
    if (this.skipped && !this.lines.length && pieces.length) pieces.shift();
    for (const piece of pieces) this.push(piece);
    this.complete = complete;
    if (complete && this.open) {
      this.push(this.open);
      this.open = "";
    }
  }

  /** Which lines have the words, whatever their case. */
  with(words: string): number[] {
    const wanted = words.toLowerCase();
    if (this.sought.words !== wanted) this.sought = { words: wanted, upTo: 0, found: [] };
    const { found } = this.sought;
    if (wanted) for (; this.sought.upTo < this.lines.length; this.sought.upTo++) if (this.lines[this.sought.upTo]!.toLowerCase().includes(wanted)) found.push(this.sought.upTo);
    return found;
  }

  private push(piece: string) {
    const shown = piece.replace(/\r$/, "").replace(/^[\s\S]*\r/, ""); // of what was written over, the last state
    const line = shown.replace(ANSI, "");
    if (line.length !== shown.length) {
      const dressed = shown.replace(MOVES, "");
      if (dressed.length !== line.length) this.coloured.set(this.lines.length, dressed);
    }
    if (isError(line)) this.errors.push(this.lines.length);
    this.widest = Math.max(this.widest, line.length);
    this.lines.push(line);
  }
}

export interface Span {
  text: string;
  look: string; // its classes
  found: boolean;
}

/** A line in pieces that look the same: as a terminal colours them, and with the words that are searched for. */
export function spansOf(line: string, coloured: string | undefined, words: string): Span[] {
  const looks = coloured === undefined ? [{ text: line, look: "" }] : looksOf(coloured);
  if (!words) return looks.map((one) => ({ ...one, found: false }));
  const ends = new Set<number>();
  const [low, wanted] = [line.toLowerCase(), words.toLowerCase()];
  const hits: [number, number][] = [];
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length)) {
    hits.push([at, at + wanted.length]);
    ends.add(at).add(at + wanted.length);
  }
  const spans: Span[] = [];
  let begin = 0;
  for (const { text, look } of looks) {
    const end = begin + text.length;
    const cuts = [begin, ...[...ends].filter((one) => one > begin && one < end), end];
    for (const [number, cut] of cuts.slice(1).entries()) {
      const from = cuts[number]!;
      spans.push({ text: line.slice(from, cut), look, found: hits.some(([first, last]) => first <= from && from < last) });
    }
    begin = end;
  }
  return spans;
}

const looksOf = (coloured: string) =>
  Anser.ansiToJson(coloured, { json: true, use_classes: true, remove_empty: true }).map(({ content, fg, decorations }) => ({
    text: content,
    look: [fg ?? "", ...decorations.map((one) => `ansi-${one}`)].join(" ").trim(),
  }));
