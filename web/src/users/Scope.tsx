// Where a role counts: in which DAGs, by tag and bundle, in which pools and queues. Nothing named: everywhere.
import { useState } from "react";
import type { Schemas } from "../api/client";
import { Field } from "../parts/Field";
import { quoted } from "../parts/words";
import { KINDS, namesIn, scopeWords, type Kind } from "./scopes";

export type Scope = NonNullable<Schemas["User"]["scope"]>;

const LABELS: Record<Kind, string> = { tags: "DAGs with a tag", bundles: "DAGs of a bundle", pools: "Pools", queues: "Queues" };
const OPTIONS: Record<Kind, string> = { tags: "--tag", bundles: "--bundle", pools: "--pool", queues: "--queue" };

/** What is typed, and the scope that it is. */
export function useScope(before?: Scope | null) {
  const [typed, setTyped] = useState<Record<Kind, string>>(() => {
    const text = (kind: Kind) => (before?.[kind] ?? []).join(", ");
    return { tags: text("tags"), bundles: text("bundles"), pools: text("pools"), queues: text("queues") };
  });
  const scope = Object.fromEntries(KINDS.map((kind) => [kind, namesIn(typed[kind])])) as Record<Kind, string[]>;
  const options = KINDS.flatMap((kind) => scope[kind].map((name) => `${OPTIONS[kind]} ${quoted(name)}`)).join(" ");
  const fields = (
    <fieldset className="scope">
      <legend>Where the role counts</legend>
      {KINDS.map((kind) => (
        <Field key={kind} id={`scope-${kind}`} label={LABELS[kind]} value={typed[kind]} change={(text) => setTyped({ ...typed, [kind]: text })} placeholder="all" spellCheck={false} />
      ))}
      <p className="quiet">Names with commas between them. Nothing beyond them exists then.</p>
    </fieldset>
  );
  return { scope, options, fields };
}

export const Where = ({ of }: { of?: Scope | null }) => (scopeWords(of) ? <>{scopeWords(of)}</> : <span className="quiet">everywhere</span>);
