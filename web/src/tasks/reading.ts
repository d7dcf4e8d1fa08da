// A log as it grows: asked for from where it ended last, until the API says that nothing will come.
import { useEffect, useReducer, useRef } from "react";
import { askLog, Refusal } from "../api/client";
import { namesOf, type InstanceName } from "../api/queries";
import { LogLines } from "./lines";

const WAIT_S = 20; // for more: the API answers as soon as there is some
const PAUSE_MS = 2_000; // after a failure
const MOST_WHOLE = 16 * 2 ** 20; // bytes of a log that is read from its beginning
const LAST = 4 * 2 ** 20; // bytes that are read of a larger one, unless all of it is asked for

export interface Reading {
  key: string;
  log: LogLines;
  size: number; // bytes of the log
  refused: string | null; // why there is none
}
const nothing = (key: string): Reading => ({ key, log: new LogLines(), size: 0, refused: null });

/** The lines of a try: of a large log the last ones, unless `whole`. */
export function useLog(of: InstanceName, tryNumber: number | undefined, whole: boolean): Reading {
  const kept = useRef(nothing(""));
  const [, grown] = useReducer((n: number) => n + 1, 0);
  const key = JSON.stringify([of, tryNumber, whole]);
  if (kept.current.key !== key) kept.current = nothing(key);
  useEffect(() => {
    const stopped = new AbortController();
    const mine = nothing(key);
    kept.current = mine;
    void follow(of, tryNumber, whole, mine, grown, stopped.signal);
    return () => stopped.abort();
  }, [key]); // which stands for all three
  return kept.current;
}

async function follow(of: InstanceName, tryNumber: number | undefined, whole: boolean, into: Reading, grown: () => void, signal: AbortSignal) {
  let offset = 0;
  let waits = 0;
  while (!signal.aborted && !into.log.complete) {
    try {
      const part = await askLog(namesOf(of), { map_index: of.map, try_number: tryNumber, offset, wait_s: waits }, signal);
      into.size = part.size;
      into.refused = null;
      if (offset === 0 && part.size > MOST_WHOLE && !whole) {
        offset = part.size - LAST;
        into.log = new LogLines(offset);
        continue;
      }
      offset = part.offset;
      waits = part.text ? 0 : WAIT_S; // what is there already is read at once
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
