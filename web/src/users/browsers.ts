/** What a browser says that it is, in the words that people have for it. The order counts: most say that they are others, too. */
const BROWSERS: [RegExp, string][] = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\//, "Firefox"],
  [/Chrom(e|ium)\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: [RegExp, string][] = [
  [/Android/, "Android"],
  [/iPhone|iPad/, "iOS"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
];

export function browserName(agent: string | null): string {
  const found = (names: [RegExp, string][]) => names.find(([pattern]) => pattern.test(agent ?? ""))?.[1];
  const [browser, system] = [found(BROWSERS), found(SYSTEMS)];
  if (!browser) return agent?.slice(0, 40) || "an unknown browser";
  return system ? `${browser} on ${system}` : browser;
}
