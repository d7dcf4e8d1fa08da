import { STATE_WORDS } from "../api/words";

// Each state has one colour, one shape and one word, the same everywhere. The shape tells them apart without the colour.
const SHAPES: Record<string, string> = {
  success: "M3.5 8.5l3 3 6-7",
  failed: "M4 4l8 8M12 4l-8 8",
  running: "M5.5 3.5v9l7-4.5z",
  queued: "M3 8h10M9 4l4 4-4 4",
  scheduled: "M8 4v4l3 2",
  deferred: "M5.5 4v8M10.5 4v8",
  up_for_retry: "M12 8a4 4 0 1 1-1.3-3M11 2.5V5.2H8.3",
  up_for_reschedule: "M4 8a4 4 0 1 0 1.3-3M5 2.5V5.2h2.7",
  skipped: "M3.5 4l4 4-4 4M8.5 4l4 4-4 4",
  upstream_failed: "M8 3v6M8 12v.6",
  removed: "M4 8h8",
  none: "",
};

/** One that a newer API has is not among the words. */
export const stateWord = (state: string) => STATE_WORDS[state] ?? state.replaceAll("_", " ");

/** The mark of a state, without its word: who shows it alone gives it a name. */
export function StateMark({ state, size = 16 }: { state: string; size?: number }) {
  return (
    <svg className={`mark s-${state}`} viewBox="0 0 16 16" width={size} height={size} aria-hidden="true">
      <rect width="16" height="16" rx="4" />
      <path d={SHAPES[state] ?? ""} />
    </svg>
  );
}

export function StateName({ state }: { state: string }) {
  return (
    <span className="state">
      <StateMark state={state} />
      {stateWord(state)}
    </span>
  );
}

// The worst first: what a mapped task's cell shows when its instances differ.
export const SEVERITY = [
  "failed", "upstream_failed", "up_for_retry", "running", "queued", "deferred", "scheduled", "up_for_reschedule", "none", "skipped",
  "removed", "success",
];

export const worst = (states: string[]) => SEVERITY.find((state) => states.includes(state)) ?? states[0] ?? "none";
