import { useEffect, useState } from "react";
import { useChoices } from "./choices";
import { ago, duration, moment } from "./words";

function useNow(everyMs: number): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A moment: how long ago it was, or the moment itself; both zones in its tooltip. */
export function Time({ at, as = "ago" }: { at: string | null | undefined; as?: "ago" | "moment" }) {
  const now = useNow(as === "ago" ? 5_000 : 3_600_000);
  const { zone } = useChoices();
  if (!at) return <span className="quiet">–</span>;
  const instant = new Date(at);
  const both = `${moment(instant, "local")} here, ${moment(instant, "utc")} UTC`;
  return (
    <time dateTime={at} title={both} className="number">
      {as === "ago" ? ago(instant, now) : moment(instant, zone)}
    </time>
  );
}

/** How long something took or, when it has not ended, has lasted. */
export function Took({ seconds, running }: { seconds: number | null | undefined; running?: boolean }) {
  if (seconds === null || seconds === undefined) return <span className="quiet">–</span>;
  return <span className={running ? "number live" : "number"}>{duration(seconds)}</span>;
}
