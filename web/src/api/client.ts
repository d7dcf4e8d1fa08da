// The one way to the API. Paths, what they take and what they answer are those of the API's description; nothing is typed by hand.
import { lost, reached } from "./connection";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
type Route<P extends keyof paths, M extends Method> = paths[P] extends { [K in M]?: infer R } ? NonNullable<R> : never;
export type PathsOf<M extends Method> = {
  [P in keyof paths]: [Exclude<Route<P, M>, undefined>] extends [never] ? never : P;
}[keyof paths];
type Json<T> = T extends { content: { "application/json": infer A } } ? A : never;
type Responses<R> = R extends { responses: infer S } ? S : never;
export type Answer<P extends keyof paths, M extends Method> = Json<
  Responses<Route<P, M>>[keyof Responses<Route<P, M>> & (200 | 201 | 202)]
>;
type Query<R> = R extends { parameters: { query?: infer Q } } ? Q : never;
type Body<R> = R extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;

export interface Asked<P extends keyof paths, M extends Method> {
  names?: Record<string, string>;
  query?: Query<Route<P, M>>;
  body?: Body<Route<P, M>>;
  signal?: AbortSignal;
  key?: string; // of what is meant: asked again with it, the API gives the first answer (Idempotency-Key)
}

/** What the API refuses, in its own words: `message` is what happened, then what to do about it. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly said: Schemas["Problem"] | null,
  ) {
    super(said ? `${said.detail} ${said.hint ?? ""}`.trim() : `The server answered with ${status}.`);
  }
}

export async function ask<M extends Method, P extends PathsOf<M>>(
  method: M,
  path: P,
  { names, query, body, signal, key }: Asked<P, M> = {},
): Promise<Answer<P, M>> {
  const answer = await send(method, path, names, query as Record<string, unknown> | undefined, body, signal, key);
  return (method === "get" ? await reading(answer) : await answer.json()) as Answer<P, M>;
}

// What was read last, by its address: the API says in a line that it is still so (ETag).
const READ_MOST = 100;
const read = new Map<string, { tag: string; content: unknown }>();

async function reading(answer: Response): Promise<unknown> {
  if (answer.status === 304) return read.get(answer.url)?.content;
  const content: unknown = await answer.json();
  const tag = answer.headers.get("ETag");
  if (tag) {
    read.delete(answer.url);
    read.set(answer.url, { tag, content });
    if (read.size > READ_MOST) read.delete(read.keys().next().value!);
  }
  return content;
}

/** Nothing that was read is kept: somebody else may look next. */
export const forget = () => read.clear();

export interface LogPart {
  text: string;
  offset: number;
  size: number; // bytes of the whole log
  complete: boolean;
}

export async function askLog(names: Record<string, string>, query: Record<string, unknown>, signal: AbortSignal): Promise<LogPart> {
  const answer = await send("get", LOGS, names, query, undefined, signal);
  return {
    text: await answer.text(),
    offset: Number(answer.headers.get("X-Log-Offset")),
    size: Number(answer.headers.get("X-Log-Size")),
    complete: answer.headers.get("X-Log-Complete") === "true",
  };
}

export const LOGS = "/api/v1/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs";

export function address(path: string, names: Record<string, string> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/{(\w+)}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") asked.set(name, String(value));
  }
  return asked.size ? `${filled}?${asked}` : filled;
}

async function send(
  method: Method,
  path: string,
  names: Record<string, string> | undefined,
  query: Record<string, unknown> | undefined,
  body: unknown,
  signal: AbortSignal | undefined,
  key?: string,
): Promise<Response> {
  const to = address(path, names, query);
  const known = method === "get" ? read.get(new URL(to, location.href).href)?.tag : undefined;
  let answer: Response;
  try {
    answer = await fetch(to, {
      method: method.toUpperCase(),
      credentials: "same-origin",
      signal: signal ?? null,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: {
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(known ? { "If-None-Match": known } : {}),
        ...(key ? { "Idempotency-Key": key } : {}),
      },
    });
  } catch (error) {
    if (!signal?.aborted) lost();
    throw error;
  }
  if (answer.ok || answer.status === 304) {
    reached();
    return answer;
  }
  const isProblem = answer.headers.get("Content-Type") === "application/problem+json";
  const said = isProblem ? ((await answer.json()) as Schemas["Problem"]) : null;
  if (answer.status >= 502) lost();
  else reached();
  throw new Refusal(answer.status, said);
}
