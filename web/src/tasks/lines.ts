// The lines of a log, as its parts arrive.
const ANSI = /\u001b\[[0-9;?]*[ -/]*[@-~]/g; // colours and moves of a terminal, which a page does not have
const plain = (line: string) => line.replace(ANSI, "").replace(/\r$/, "").replace(/^[\s\S]*\r/, "");

export class LogLines {
  readonly lines: string[] = [];
  private open = ""; // a line whose end is still to come
  complete = false;

  add(text: string, complete: boolean) {
    const pieces = (this.open + text).split("\n");
    this.open = pieces.pop() ?? "";
    for (const piece of pieces) this.lines.push(plain(piece));
    this.complete = complete;
    if (complete && this.open) {
      this.lines.push(plain(this.open));
      this.open = "";
    }
  }
}
