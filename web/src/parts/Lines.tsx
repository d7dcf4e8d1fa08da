// Lines over time, with axes, a legend that tells the newest values or those under the pointer, and the same as a table.
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useChoices } from "./choices";
import { Table } from "./Table";
import { Time } from "./time";
import { count, moment, tickWords } from "./words";

const HEIGHT = 190; // pixels
const COLOURS = ["--running", "--success", "--deferred", "--retry", "--queued", "--upstream"];
const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [12, 4], [1, 2]]; // told apart without colours, too

interface Line {
  name: string;
  values: (number | null)[];
}

/** While the pointer is elsewhere, the legend has the newest values. */
function tellNewest(plot: uPlot) {
  if (plot.cursor.idx == null) plot.setLegend({ idx: plot.data[0].length - 1 }, false);
}

/** ``at`` has seconds. */
export function Lines({ label, at, lines, unit = "" }: { label: string; at: number[]; lines: Line[]; unit?: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [raw, setRaw] = useState(false);
  const { theme, zone } = useChoices();
  const shape = JSON.stringify([at, lines]);
  useEffect(() => {
    const element = place.current;
    if (!element || raw) return;
    const style = getComputedStyle(document.documentElement);
    const ofStyle = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: ofStyle("--quiet"), grid: { stroke: ofStyle("--line"), width: 1 }, ticks: { show: false }, font: `11px ${ofStyle("--font")}` };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        ...(zone === "utc" ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") } : {}),
        cursor: { drag: { x: false, y: false } },
        hooks: { ready: [tellNewest], setCursor: [tellNewest] },
        axes: [{ ...axis, space: 64, values: (_, ticks, __, ___, step) => ticks.map((tick, n) => tickWords(tick, ticks[n - 1], step, zone)) }, { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => `${count(tick)}${unit}`) }],
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] } },
        series: [{ label: "At", value: (_, tick) => (tick === null ? "--" : moment(new Date(tick * 1000), zone)) }, ...lines.map((line, n) => ({ label: line.name, value: (_: uPlot, value: number | null) => (value === null ? "--" : `${value.toLocaleString("en-US", { maximumFractionDigits: 1 })}${unit}`), stroke: ofStyle(COLOURS[n % COLOURS.length]!), dash: DASHES[n % DASHES.length]!, width: 1.6, points: { show: at.length < 3 } }))],
      },
      [at, ...lines.map((line) => line.values)] as uPlot.AlignedData,
      element,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [shape, theme, zone, raw, unit]);
  return (
    <figure className="lines-chart" aria-label={label}>
      {raw ? (
        <Table
          label={label}
          rows={at.map((second, n) => ({ second, n }))}
          keyOf={({ n }) => String(n)}
          columns={[
            { name: "At", cell: ({ second }) => <Time at={new Date(second * 1000).toISOString()} as="moment" /> },
            ...lines.map((line) => ({ name: line.name, as: "right" as const, cell: ({ n }: { n: number }) => line.values[n]?.toLocaleString("en-US") ?? "" })),
          ]}
        />
      ) : (
        <div ref={place} role="img" aria-label={`${label}: ${lines.map((line) => line.name).join(", ")} over time`} />
      )}
      <button type="button" className="linklike" onClick={() => setRaw(!raw)}>
        {raw ? "As a chart" : "As a table"}
      </button>
    </figure>
  );
}
