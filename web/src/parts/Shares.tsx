import { StateMark } from "./states";
import { count } from "./words";

interface Share {
  state: string;
  n: number;
  word: string;
}

/** How many of something are in which state: a bar, and below it the numbers. */
export function Shares({ label, of, parts }: { label: string; of: number; parts: Share[] }) {
  const there = parts.filter((part) => part.n > 0);
  return (
    <div className="shares" role="group" aria-label={label}>
      <div className="shares-bar" aria-hidden="true">
        {there.map((part) => (
          <span key={part.state} className={`bar s-${part.state}`} style={{ width: `${(100 * part.n) / Math.max(1, of)}%` }} />
        ))}
      </div>
      <p className="shares-words">
        {there.map((part) => (
          <span key={part.state} className="state">
            <StateMark state={part.state} size={12} />
            <span className="number">
              {count(part.n)} {part.word}
            </span>
          </span>
        ))}
      </p>
    </div>
  );
}
