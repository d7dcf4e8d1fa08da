import type { InputHTMLAttributes, ReactNode } from "react";

type Own = "id" | "value" | "onChange";
interface Asked extends Omit<InputHTMLAttributes<HTMLInputElement>, Own> {
  id: string;
  label: ReactNode;
  hint?: string;
  value: string;
  change: (value: string) => void;
}

/** A line that is typed, below what it is called. */
export function Field({ id, label, hint, value, change, ...more }: Asked) {
  return (
    <>
      <label htmlFor={id}>
        {label} {hint && <span className="quiet">({hint})</span>}
      </label>
      <input id={id} value={value} autoComplete="off" onChange={(event) => change(event.target.value)} {...more} />
    </>
  );
}
