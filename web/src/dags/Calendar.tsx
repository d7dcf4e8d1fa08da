import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../api/client";
import { calendarQuery } from "../api/queries";
import { Empty, Found } from "../parts/parts";
import { Shares } from "../parts/Shares";
import { counted, duration } from "../parts/words";

type Day = Schemas["CalendarDay"];
const DAY_MS = 86_400_000;
const WEEKS = 53;

// Where the year is wider than the screen, its newest days are shown.
function toNewest(year: HTMLDivElement | null) {
  year?.scrollTo({ left: year.scrollWidth });
}

/** A year of runs, a square a day: how many of its runs ended well. The days are those of UTC, as logical dates are. */
export function CalendarTab() {
  const { dagId } = useParams({ from: "/dags/$dagId" });
  const calendar = useQuery(calendarQuery(dagId));
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Found of={calendar}>
      {(found) => {
        if (!found.days.length) return <Empty title="It has not run in the last year." />;
        const days = new Map(found.days.map((day) => [day.day, day]));
        const shown = (chosen !== null ? days.get(chosen) : undefined) ?? found.days.at(-1)!;
        return (
          <>
            <div className="scroll year" ref={toNewest} role="group" aria-label="Runs of the last year, by day: arrows move a day or a week">
              <Year days={days} chosen={shown.day} choose={setChosen} />
            </div>
            {found.is_cut && <p className="quiet">It has more runs than are counted here: the days before {found.days[0]!.day} are left out.</p>}
            <h2 className="note-below">{shown.day}</h2>
            <dl className="facts-line">
              <div><dt>Runs</dt><dd className="number">{shown.runs}</dd></div>
              <div><dt>Median time</dt><dd>{shown.median_s === null ? "–" : duration(shown.median_s)}</dd></div>
              <div><dt>Longest</dt><dd>{shown.longest_s === null ? "–" : duration(shown.longest_s)}</dd></div>
            </dl>
            <Shares label={`Runs of ${shown.day}`} of={shown.runs} parts={partsOf(shown)} />
            <p className="note-below">
              <Link to="/runs" search={{ dag: dagId }}>Runs of {dagId}</Link>
            </p>
          </>
        );
      }}
    </Found>
  );
}

const partsOf = (day: Day) => [
  { state: "success", n: day.success, word: "success" },
  { state: "failed", n: day.failed, word: "failed" },
  { state: "running", n: day.runs - day.success - day.failed, word: "not ended" },
];

function Year({ days, chosen, choose }: { days: Map<string, Day>; chosen: string; choose: (day: string) => void }) {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const first = today - ((WEEKS - 1) * 7 + new Date(today).getUTCDay()) * DAY_MS; // a Sunday
  const dates = Array.from({ length: (today - first) / DAY_MS + 1 }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
  const months = Array.from({ length: WEEKS }, (_, week) => dates[week * 7] ?? "").map((date, week, all) => (date.slice(0, 7) !== (all[week - 1] ?? "").slice(0, 7) ? MONTHS[Number(date.slice(5, 7)) - 1] : ""));
  const steps: Record<string, number> = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -7, ArrowRight: 7 };
  // To the next day in this direction that has runs: of the others there is nothing to tell.
  const move = (event: React.KeyboardEvent<HTMLDivElement>) => {
    const by = steps[event.key];
    const ends: Record<string, string | undefined> = { Home: dates.find((date) => days.has(date)), End: dates.findLast((date) => days.has(date)) };
    if (by === undefined && !(event.key in ends)) return;
    event.preventDefault();
    let next = ends[event.key];
    if (by !== undefined) for (let at = dates.indexOf(chosen) + by; at >= 0 && at < dates.length && !next; at += by) if (days.has(dates[at]!)) next = dates[at];
    if (!next) return;
    choose(next);
    event.currentTarget.querySelector<HTMLElement>(`[data-day="${next}"]`)?.focus();
  };
  return (
    <>
      <div className="calendar-months" aria-hidden="true">
        {months.map((month, week) => (
          <span key={week}>{month}</span>
        ))}
      </div>
      <div className="calendar" onKeyDown={move}>
        {dates.map((date) => {
          const day = days.get(date);
          if (!day) return <span key={date} className="calendar-day" title={`${date}: no run`} />;
          const told = `${date}: ${counted(day.runs, "run")}, ${day.failed} failed`;
          return (
            <button
              key={date}
              type="button"
              data-day={date}
              tabIndex={date === chosen ? 0 : -1}
              aria-pressed={date === chosen}
              aria-label={told}
              className={date === chosen ? "calendar-day chosen s-success" : "calendar-day s-success"}
              title={told}
              onClick={() => choose(date)}
            >
              <i style={{ height: `${(100 * day.success) / day.runs}%` }} />
              {day.failed > 0 && <i className="s-failed" style={{ height: `${Math.max(25, (100 * day.failed) / day.runs)}%` }} />}
            </button>
          );
        })}
      </div>
    </>
  );
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
