// Numbers, durations and moments in the form that all pages use.
export const count = (n: number) => n.toLocaleString("en-US");

export const counted = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "";
  const s = Math.max(0, seconds);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const whole = Math.round(s);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return hours ? `${days} d ${hours} h` : `${days} d`;
  if (hours) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  return whole % 60 && minutes < 10 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
}

export function bytes(n: number): string {
  if (n < 1024) return n ? `${Math.round(n)} B` : "0";
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(n) / 10));
  const of = n / 1024 ** power;
  return `${of < 99.95 ? of.toFixed(1) : Math.round(of).toLocaleString("en-US")} ${units[power - 1]}`;
}

export function ago(instant: Date, now: Date): string {
  const seconds = (now.getTime() - instant.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

export function moment(instant: Date, zone: "local" | "utc"): string {
  const at = zone === "utc" ? instant.toISOString() : new Date(instant.getTime() - instant.getTimezoneOffset() * 60_000).toISOString();
  return `${at.slice(0, 10)} ${at.slice(11, 19)}`;
}

/** A moment on an axis whose ticks are `step` seconds apart; with the day, or of days the year, where that is another one than at the tick before. */
export function tickWords(second: number, before: number | undefined, step: number, zone: "local" | "utc"): string {
  const [day, time] = moment(new Date(second * 1000), zone).split(" ") as [string, string];
  const ofDays = step >= 86_400;
  const shown = ofDays ? day.slice(5) : step < 60 ? time : time.slice(0, 5);
  const below = ofDays ? day.slice(0, 4) : day;
  return before !== undefined && moment(new Date(before * 1000), zone).startsWith(below) ? shown : `${shown}\n${below}`;
}

/** Of a map index: nothing for a task that is not mapped. */
export const instanceName = (taskId: string, map: number) => (map < 0 ? taskId : `${taskId}[${map}]`);

export const firstLine = (text: string | null | undefined) => (text ?? "").split("\n", 1)[0] ?? "";

/** A word as a shell takes it. */
export const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
