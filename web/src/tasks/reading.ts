// A log as it grows: asked for from where it ended last, until the API says that nothing will come.
import { useEffect, useReducer, useRef } from "react";
import { askLog, Refusal } from "../api/client";
import { namesOf, type InstanceName } from "../api/queries";
import { LogLines } from "./lines";

const WAIT_S = 20; // for more: the API answers as soon as there is some
const PAUSE_MS = 2_000; // after a failure

/** The lines of a try, and why there are none if that is so. */
export function useLog(of: InstanceName, tryNumber: number | undefined): { log: LogLines; refused: string | null } {
  const kept = useRef({ key: "", log: new LogLines(), refused: null as string | null });
  const [, grown] = useReducer((n: number) => n + 1, 0);
  const key = JSON.stringify([of, tryNumber]);
  if (kept.current.key !== key) kept.current = { key, log: new LogLines(), refused: null };
  useEffect(() => {
    const stopped = new AbortController();
    const mine = { key, log: new LogLines(), refused: null as string | null };
    kept.current = mine;
    void follow(of, tryNumber, mine, grown, stopped.signal);
    return () => stopped.abort();
  }, [key]); // which stands for both
  return kept.current;
}

async function follow(of: InstanceName, tryNumber: number | undefined, into: { log: LogLines; refused: string | null }, grown: () => void, signal: AbortSignal) {
  let offset = 0;
  let waits = 0;
  while (!signal.aborted && !into.log.complete) {
    try {
      const part = await askLog(namesOf(of), { map_index: of.map, try_number: tryNumber, offset, wait_s: waits }, signal);
      offset = part.offset;
      waits = part.text ? 0 : WAIT_S; // what is there already is read at once
      into.refused = null;
      into.log.add(part.text, part.complete);
      grown();
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.status < 500) {
        into.refused = error.message;
        grown();
        if (error.status !== 404) return;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
