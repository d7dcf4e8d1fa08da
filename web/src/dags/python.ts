// Colours for Python: enough to read by, and no parser.
export interface Painted {
  kind: "" | "word" | "text" | "note" | "number" | "mark";
  text: string;
}

const WORDS =
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield True False None";
const TOKENS = new RegExp(
  [
    /(?<note>#[^\n]*)/,
    /(?<text>[rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|(?![\s\S]))|'''[\s\S]*?(?:'''|(?![\s\S]))|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<mark>^[ \t]*@[\w.]+)/,
    new RegExp(`(?<word>\\b(?:${WORDS.replaceAll(" ", "|")})\\b)`),
    /(?<number>\b\d[\d_]*(?:\.\d+)?\b)/,
  ]
    .map((one) => one.source)
    .join("|"),
  "gm",
);

/** The lines of a file, each in parts of one colour. */
export function painted(code: string): Painted[][] {
  const lines: Painted[][] = [[]];
  const add = (kind: Painted["kind"], text: string) => {
    text.split("\n").forEach((piece, at) => {
      if (at) lines.push([]);
      if (piece) lines.at(-1)!.push({ kind, text: piece });
    });
  };
  let end = 0;
  for (const found of code.matchAll(TOKENS)) {
    add("", code.slice(end, found.index));
    const kind = Object.entries(found.groups ?? {}).find(([, text]) => text !== undefined)?.[0] as Painted["kind"];
    add(kind, found[0]);
    end = found.index + found[0].length;
  }
  add("", code.slice(end));
  return lines;
}
