// One set of icons, drawn on 16 by 16.
const PATHS = {
  home: "M2.5 7.5L8 3l5.5 4.5V13h-4V9.5h-3V13h-4z",
  dags: "M2.5 3h4v3h-4zM9.5 10h4v3h-4zM9.5 3h4v3h-4zM6.5 4.5h3M4.5 6v5.5h5",
  runs: "M2.5 4h7M2.5 8h11M2.5 12h8",
  capacity: "M3 13V7M8 13V3M13 13V9",
  fleet: "M2.5 3.5h11v3.5h-11zM2.5 9h11v3.5h-11zM5 5.2h.1M5 10.7h.1",
  asset: "M8 2.5c3 0 5 .9 5 2v7c0 1.1-2 2-5 2s-5-.9-5-2v-7c0-1.1 2-2 5-2zM3 4.5c0 1.100 2 2 5 2s5-.9 5-2M3 8c0 1.100 2 2 5 2s5-.9 5-2",
  backfills: "M3 8a5 5 0 1 0 1.500-3.600M3 2.800v2.700h2.700M8 5.500V8l1.800 1.200",
  insights: "M2.5 12.500l3.500-4 3 2.500 4.500-6.500M10 4.500h3.500V8",
  events: "M3 3.500h10v8H8l-3 2.500v-2.500H3z",
  key: "M6 7.500a3 3 0 1 0 3 3M8.200 8.300L13.500 3M11 5.500l1.800 1.800",
  bell: "M4 11V7.500a4 4 0 0 1 8 0V11l1 1.500H3zM6.800 14h2.400",
  aside: "M8 2.500L14 13H2zM8 6.500v3M8 11.200v.100",
  token: "M2.5 4.5h11v2.300a1.200 1.200 0 0 0 0 2.400v2.300h-11v-2.300a1.200 1.200 0 0 0 0-2.400zM9.500 4.500v1M9.500 7.500v1M9.500 10.500v1",
  users: "M6 3a2.300 2.300 0 1 0 0 4.600A2.300 2.300 0 0 0 6 3zM2 13c0-2.400 1.700-4 4-4s4 1.600 4 4M10.500 3.300a2.300 2.300 0 0 1 0 4M11.500 9.300c1.600.5 2.500 1.900 2.500 3.700",
  session: "M2.500 3.500h11v7.500h-11zM6 13.500h4M8 11v2.500",
  settings: "M3 4.500h6M12 4.500h1M3 11.500h1M7 11.500h6M10.500 3v3M5.500 10v3",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M13 3l-1.4 1.4M4.4 11.6L3 13",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  out: "M6.5 3H3v10h3.5M7 8h6.5M11 5.5L13.5 8 11 10.5",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.5 3.5",
  copy: "M5.5 5.5V3H13v7.5h-2.5M3 5.5h7.5V13H3z",
  download: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  play: "M5 3.5v9l7-4.5z",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  close: "M4 4l8 8M12 4l-8 8",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2.2 1.5",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
