import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { address } from "../api/client";
import { namesOf, type InstanceName } from "../api/queries";
import { Icon } from "../parts/icons";
import { Empty } from "../parts/parts";
import { bytes, count, counted } from "../parts/words";
import { isError, spansOf } from "./lines";
import { useLog } from "./reading";

const LINE = 19; // pixels
const MOST_LINES = 500_000; // at once: browsers have no element above some ten million pixels

export function Log({ of, tryNumber, failed }: { of: InstanceName; tryNumber?: number; failed: boolean }) {
  const [whole, setWhole] = useState(false);
  const { log, size: stored, refused } = useLog(of, tryNumber, whole);
  const lines = log.lines;
  const size = lines.length;
  const area = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState("");
  const words = useDeferredValue(typed);
  const [follows, setFollows] = useState(true);
  const [at, setAt] = useState<number | null>(null); // the line that was jumped to
  const [chosen, setChosen] = useState(0); // which of the parts of so many lines
  const parts = Math.max(1, Math.ceil(size / MOST_LINES));
  const part = follows && !failed ? parts - 1 : Math.min(chosen, parts - 1);
  const first = part * MOST_LINES;
  const rows = useVirtualizer({ count: Math.min(MOST_LINES, size - first), getScrollElement: () => area.current, estimateSize: () => LINE, overscan: 30 });
  const hits = log.with(words);
  const { errors } = log;
  const jump = (line: number | undefined) => {
    if (line === undefined) return;
    setFollows(false);
    setAt(line);
    setChosen(Math.floor(line / MOST_LINES));
  };
  useEffect(() => {
    if (at !== null) rows.scrollToIndex(at - first, { align: "center" });
  }, [at, first, rows]);
  const next = (among: number[], by: 1 | -1) => {
    const here = at ?? (by > 0 ? -1 : size);
    jump(by > 0 ? (among.find((line) => line > here) ?? among[0]) : (among.findLast((line) => line < here) ?? among.at(-1)));
  };
  // The log of what failed opens at its error, that of what runs at its end.
  const opened = useRef(false);
  const firstError = errors[0];
  useEffect(() => {
    if (!opened.current && failed && firstError !== undefined) {
      opened.current = true;
      jump(firstError);
    }
  });
  useEffect(() => {
    if (follows && !failed && size) rows.scrollToIndex(size - first - 1, { align: "end" });
  }, [follows, failed, size, first, rows]);
  const turn = (by: 1 | -1) => {
    setFollows(false);
    setAt(null);
    setChosen(part + by);
    area.current?.scrollTo({ top: 0 });
  };
  const download = address("/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/file", namesOf(of), { map_index: of.map, try_number: tryNumber });
  return (
    <div className="log">
      <div className="log-bar">
        <input
          type="search"
          value={typed}
          placeholder="Search the log"
          aria-label="Search the log"
          onChange={(event) => setTyped(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") next(log.with(typed), event.shiftKey ? -1 : 1);
          }}
        />
        {typed && (
          <span className="quiet number" role="status">
            {counted(hits.length, "line")}
          </span>
        )}
        {errors.length > 0 && (
          <button type="button" onClick={() => next(errors, 1)}>
            Next error
          </button>
        )}
        <span className="spread" />
        {parts > 1 && (
          <span className="quiet number" role="group" aria-label="Lines shown">
            <button type="button" className="bare" disabled={part === 0} onClick={() => turn(-1)} aria-label="Earlier lines">
              ‹
            </button>
            {count(first + 1)}–{count(Math.min(size, first + MOST_LINES))}
            <button type="button" className="bare" disabled={part === parts - 1} onClick={() => turn(1)} aria-label="Later lines">
              ›
            </button>
          </span>
        )}
        <span className="quiet number">{counted(size, "line")}</span>
        {log.complete ? (
          <span className="quiet">complete</span>
        ) : (
          <label className="check">
            <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} /> Follow
          </label>
        )}
        <a className="button" href={download} download aria-label={`Download the log, ${bytes(stored)}`} title={`Download the log, ${bytes(stored)}`}>
          <Icon name="download" />
        </a>
      </div>
      {log.skipped > 0 && (
        <p className="note">
          These are the last {bytes(stored - log.skipped)} of {bytes(stored)}.{" "}
          <button type="button" onClick={() => setWhole(true)}>
            Read all of it
          </button>
        </p>
      )}
      {size ? (
        <div
          className="lines"
          ref={area}
          tabIndex={0}
          role="region"
          aria-label="Log"
          onScroll={(event) => {
            const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
            if (follows && !log.complete && scrollHeight - scrollTop - clientHeight > 4 * LINE) {
              setFollows(false);
              setChosen(part);
            }
          }}
        >
          <div style={{ height: rows.getTotalSize(), width: `calc(${log.widest + 10}ch + 24px)` }}>
            {rows.getVirtualItems().map((row) => {
              const number = first + row.index;
              const line = lines[number]!;
              return (
                <div key={number} className={classOf(line, number === at)} style={{ top: row.start, height: LINE }}>
                  <span className="line-number" aria-hidden="true">
                    {!log.skipped && count(number + 1)}
                  </span>
                  {spansOf(line, log.coloured.get(number), words).map(({ text, look, found }, place) =>
                    found ? (
                      <mark key={place}>{text}</mark>
                    ) : look ? (
                      <span key={place} className={look}>
                        {text}
                      </span>
                    ) : (
                      text
                    ),
                  )}
                </div>
              );
            })}
          </div>
        </div>
      ) : (
        <Empty title={refused ?? (log.complete ? "The try has said nothing." : "Nothing has been said yet.")} />
      )}
    </div>
  );
}

const classOf = (line: string, isAt: boolean) => ["line", isError(line) ? "bad" : /\bWARN(ING)?\b/.test(line) ? "warned" : "", isAt ? "at" : ""].join(" ");
