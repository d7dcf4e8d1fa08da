export const KINDS = ["tags", "bundles", "pools", "queues"] as const;
export type Kind = (typeof KINDS)[number];

/** Names that are typed with commas between them, each once. */
export const namesIn = (typed: string): string[] => [
  ...new Set(
    typed
      .split(",")
      .map((name) => name.trim())
      .filter(Boolean),
  ),
];

/** As the command line has it; empty: everywhere. */
export const scopeWords = (scope?: Partial<Record<Kind, readonly string[]>> | null): string =>
  KINDS.filter((kind) => scope?.[kind]?.length)
    .map((kind) => `${kind} ${[...scope![kind]!].join(", ")}`)
    .join("; ");
