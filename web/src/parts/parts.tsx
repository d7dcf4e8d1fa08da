// What several pages are made of.
import * as Ariakit from "@ariakit/react";
import type { UseQueryResult } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Refusal } from "../api/client";
import { Icon } from "./icons";

/** What a question has found, and in its place what is to be known while there is nothing yet, or why there is nothing. */
export function Found<T>({ of, children }: { of: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (of.data !== undefined) return <>{children(of.data)}</>;
  if (of.error) return <Trouble error={of.error} again={() => void of.refetch()} />;
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading</span>
      <i />
      <i />
      <i />
    </div>
  );
}

export function Trouble({ error, again }: { error: Error; again?: () => void }) {
  const problem = error instanceof Refusal ? error.said : null;
  const told = error instanceof Refusal ? error.message : "The API cannot be reached. It is asked again by itself.";
  return (
    <div className="trouble" role="alert">
      <p>{problem?.detail ?? told}</p>
      {problem?.hint && <p>{problem.hint}</p>}
      {problem && (
        <p className="quiet">
          Request <code>{problem.request_id}</code>
        </p>
      )}
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="quiet">{children}</div>}
    </div>
  );
}

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="section">
      <header>
        <h2>{title}</h2>
        {aside && <div className="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** How much of something is taken, or with `calm` done: then all of it is no reason to look up. */
export function Meter({ used, of, label, calm }: { used: number; of: number; label: string; calm?: boolean }) {
  const share = of > 0 ? Math.min(1, used / of) : used > 0 ? 1 : 0;
  return (
    <div className={share >= 1 && !calm ? "meter full" : "meter"} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={of} aria-valuenow={Math.min(used, of)}>
      <div style={{ width: `${share * 100}%` }} />
    </div>
  );
}

export function Switch({ on, label, change, busy }: { on: boolean; label: string; change: (on: boolean) => void; busy?: boolean }) {
  return (
    <button type="button" role="switch" aria-checked={on} aria-label={label} title={label} disabled={busy} className="switch" onClick={() => change(!on)}>
      <span />
    </button>
  );
}

export function Copied({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" className="bare" title={`${label}: ${text}`} onClick={() => void copy()}>
      <Icon name="copy" />
      <span className="visually-hidden">{done ? "Copied" : label}</span>
    </button>
  );
}

/** A command as one types it. */
export function Command({ text }: { text: string }) {
  return (
    <span className="command">
      <code>{text}</code>
      <Copied text={text} label="Copy the command" />
    </span>
  );
}

export function Dialog({ title, open, close, wide, children }: { title: string; open: boolean; close: () => void; wide?: boolean; children: ReactNode }) {
  return (
    <Ariakit.Dialog open={open} onClose={close} unmountOnHide className={wide ? "dialog wide" : "dialog"} backdrop={<div className="backdrop" />}>
      <header>
        <Ariakit.DialogHeading>{title}</Ariakit.DialogHeading>
        <Ariakit.DialogDismiss className="bare" aria-label="Close">
          <Icon name="close" />
        </Ariakit.DialogDismiss>
      </header>
      {children}
    </Ariakit.Dialog>
  );
}
