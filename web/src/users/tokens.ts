import type { Schemas } from "../api/client";
import { quoted } from "../parts/words";

export type TokenKind = Schemas["TokenRequest"]["kind"];
export const TOKEN_STATES = ["good", "revoked", "expired", "void"] as const;

/** Whom a token can be for, in the words of the page. */
export const TOKEN_KINDS: Record<TokenKind, string> = {
  operator: "a person or tool",
  worker: "workers",
  processor: "processors",
  triggerer: "triggerers",
};

/** What services of this kind may serve, and how the command line names one of it. */
export const servedBy = (kind: TokenKind) => (kind === "processor" ? { many: "Bundles", option: "--bundle" } : { many: "Queues", option: "--queue" });

/** The command that makes the same token; `where` are the options of a scope. */
export function createCommand({ kind, name, role, serves, days }: { kind: TokenKind; name: string; role: string; serves: string[]; days: string }, where: string): string {
  const { option } = servedBy(kind);
  const own = kind === "operator" ? [`--role ${role}`, where] : serves.map((one) => `${option} ${quoted(one)}`);
  return [`evenflow tokens create ${kind}`, name && `--name ${quoted(name)}`, ...own, days && `--days ${days}`].filter(Boolean).join(" ");
}
