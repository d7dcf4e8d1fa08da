import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { address } from "../api/client";
import { namesOf, type InstanceName } from "../api/queries";
import { Icon } from "../parts/icons";
import { Empty } from "../parts/parts";
import { count, counted } from "../parts/words";
import { useLog } from "./reading";

const LINE = 19; // pixels
const ERROR = /\b(Traceback|ERROR|CRITICAL|Error:|Exception)\b|^\w*(Error|Exception)\b/;

export function Log({ of, tryNumber, failed }: { of: InstanceName; tryNumber?: number; failed: boolean }) {
  const { log, refused } = useLog(of, tryNumber);
  const lines = log.lines;
  const size = lines.length;
  const area = useRef<HTMLDivElement>(null);
  const [typed, setTyped] = useState("");
  const [follows, setFollows] = useState(true);
  const [at, setAt] = useState<number | null>(null); // the line that was jumped to
  const rows = useVirtualizer({ count: size, getScrollElement: () => area.current, estimateSize: () => LINE, overscan: 30 });
  const hits = useMemo(() => {
    const wanted = typed.toLowerCase();
    return wanted ? lines.flatMap((line, number) => (line.toLowerCase().includes(wanted) ? [number] : [])) : [];
  }, [typed, lines, size]);
  const errors = useMemo(() => lines.flatMap((line, number) => (ERROR.test(line) ? [number] : [])), [lines, size]);
  const widest = useMemo(() => lines.reduce((most, line) => Math.max(most, line.length), 0), [lines, size]);
  const jump = (line: number | undefined) => {
    if (line === undefined) return;
    setFollows(false);
    setAt(line);
    rows.scrollToIndex(line, { align: "center" });
  };
  const next = (among: number[], by: 1 | -1) => {
    const here = at ?? (by > 0 ? -1 : size);
    jump(by > 0 ? (among.find((line) => line > here) ?? among[0]) : ([...among].reverse().find((line) => line < here) ?? among.at(-1)));
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
    if (follows && !failed && size) rows.scrollToIndex(size - 1, { align: "end" });
  }, [follows, failed, size, rows]);
  const download = address("/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs", namesOf(of), { map_index: of.map, try_number: tryNumber });
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
            if (event.key === "Enter") next(hits, event.shiftKey ? -1 : 1);
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
        <span className="quiet number">{counted(size, "line")}</span>
        {log.complete ? (
          <span className="quiet">complete</span>
        ) : (
          <label className="check">
            <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} /> Follow
          </label>
        )}
        <a className="button" href={download} download={`${of.dagId}-${of.runId}-${of.taskId}.log`} aria-label="Download the first mebibyte">
          <Icon name="download" />
        </a>
      </div>
      {size ? (
        <div
          className="lines"
          ref={area}
          tabIndex={0}
          role="region"
          aria-label="Log"
          onScroll={(event) => {
            const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
            if (!log.complete && scrollHeight - scrollTop - clientHeight > 4 * LINE) setFollows(false);
          }}
        >
          <div style={{ height: rows.getTotalSize(), width: `calc(${widest + 10}ch + 24px)` }}>
            {rows.getVirtualItems().map((row) => (
              <div key={row.index} className={classOf(lines[row.index]!, row.index === at)} style={{ top: row.start, height: LINE }}>
                <span className="line-number" aria-hidden="true">
                  {count(row.index + 1)}
                </span>
                <Line text={lines[row.index]!} search={typed} />
              </div>
            ))}
          </div>
        </div>
      ) : (
        <Empty title={refused ?? (log.complete ? "The try has said nothing." : "Nothing has been said yet.")} />
      )}
    </div>
  );
}

const classOf = (line: string, isAt: boolean) => ["line", ERROR.test(line) ? "bad" : /\bWARN(ING)?\b/.test(line) ? "warned" : "", isAt ? "at" : ""].join(" ");

function Line({ text, search }: { text: string; search: string }) {
  if (!search) return <>{text}</>;
  const parts = [];
  const low = text.toLowerCase();
  const wanted = search.toLowerCase();
  let from = 0;
  for (let found = low.indexOf(wanted); found >= 0; found = low.indexOf(wanted, from)) {
    parts.push(text.slice(from, found), <mark key={found}>{text.slice(found, found + wanted.length)}</mark>);
    from = found + wanted.length;
  }
  return <>{[...parts, text.slice(from)]}</>;
}
