/** Which DAG, and which run of it, something that is set aside is of; a backfill is known by its number alone. */
export function placeOf(kind: string, object: string): { dagId?: string; runId?: string } {
  if (kind === "backfill") return {};
  if (kind !== "run") return { dagId: object };
  const [dagId = "", runId = ""] = object.split("/", 2);
  return { dagId, runId };
}

const WHAT: Record<string, string> = {
  run: "a run",
  schedule: "the runs of a schedule",
  assets: "the runs that assets would make",
  backfill: "the runs of a backfill",
};

/** What does not go on; a kind of a newer API is told by its name. */
export const whatIs = (kind: string): string => WHAT[kind] ?? kind;
