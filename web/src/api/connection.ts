// Whether the API answers, for all to see.
import { useSyncExternalStore } from "react";

let since: Date | null = null;
const listeners = new Set<() => void>();

function become(next: Date | null) {
  if ((since === null) === (next === null)) return;
  since = next;
  for (const listener of listeners) listener();
}

export const lost = () => become(new Date());
export const reached = () => become(null);

/** Since when it does not answer; null: it does. */
export function useLostSince(): Date | null {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => since,
  );
}
