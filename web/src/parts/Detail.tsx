import { duration } from "./words";

/** What was before and is after stands side by side; anything else as it was told. */
export function Detail({ detail }: { detail: Record<string, unknown> | null }) {
  if (!detail) return null;
  const { before, after, ...rest } = detail;
  return (
    <>
      {(before !== undefined || after !== undefined) && (
        <code>
          {shown(before)} → {shown(after)}
        </code>
      )}{" "}
      {Object.entries(rest).map(([name, value]) => (
        <span key={name} className="pair-of">
          <span className="quiet">{name.replaceAll("_", " ")}</span> <code>{name.endsWith("_s") && typeof value === "number" ? duration(value) : shown(value)}</code>
        </span>
      ))}
    </>
  );
}

const shown = (value: unknown) => (value === undefined || value === null ? "nothing" : typeof value === "string" ? value : JSON.stringify(value));
