// A log as it grows: what there is of it is asked for, what follows is told, until the API says that nothing will come.
import { useEffect, useReducer, useRef } from "react";
import { address, askLog, LOGS, Refusal, type Schemas } from "../api/client";
import { namesOf, type InstanceName } from "../api/queries";
import { listen } from "../api/stream";
import { LogLines } from "./lines";

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
  while (!signal.aborted && !into.log.complete) {
    try {
      const part = await askLog(namesOf(of), { map_index: of.map, try_number: tryNumber, offset }, signal);
      into.size = part.size;
      into.refused = null;
      if (offset === 0 && part.size > MOST_WHOLE && !whole) {
        offset = part.size - LAST;
        into.log = new LogLines(offset);
        continue;
      }
      offset = part.offset;
      into.log.add(part.text, part.complete);
      grown();
      if (part.text || part.complete) continue; // what is there already is read at once
      offset = await hear(of, tryNumber, offset, into, grown, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.status < 500) {
        into.refused = error.message;
        grown();
        if (error.status !== 404) return;
      }
    }
    if (!into.log.complete) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Adds what is told from `offset` on, until the log ends or the API refuses to tell it; returns up to where it was heard. */
function hear(of: InstanceName, tryNumber: number | undefined, offset: number, into: Reading, grown: () => void, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const end = () => {
      stop();
      resolve(offset);
    };
    const stop = listen({
      at: () => address(`${LOGS}/live`, namesOf(of), { map_index: of.map, try_number: tryNumber, offset }),
      heard: {
        log: (data) => {
          const news = JSON.parse(data) as Schemas["LogText"];
          offset = news.offset;
          into.size = news.size;
          into.log.add(news.text, news.complete);
          grown();
          if (news.complete) end();
        },
      },
      refused: end,
    });
    signal.addEventListener("abort", end);
  });
}
