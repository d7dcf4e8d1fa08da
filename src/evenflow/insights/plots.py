"""The charts of the report, each in a light and in a dark theme."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from evenflow.insights.lake import MartRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 160  # sharp on dense screens
HOUR_US = 3_600_000_000
MOST_BARS = 14
MOST_LINES = 4  # limits whose use is drawn
FEWEST_DAYS, FEWEST_HOURS = 7, 12  # along an axis: less would fill it


@dataclass(frozen=True, slots=True)
class Palette:
    name: str
    paper: str
    ink: str
    faint: str
    grid: str
    hues: tuple[str, ...]


LIGHT = Palette(
    "light",
    "#ffffff",
    "#1d2433",
    "#667085",
    "#e6e9f0",
    ("#3b6fd4", "#e07a3f", "#8a63d2", "#1f8a4c", "#c0362c", "#b08900", "#4a9aa8"),
)
DARK = Palette(
    "dark",
    "#171a21",
    "#e3e7ef",
    "#98a2b3",
    "#2a303c",
    ("#6f9df0", "#f0945c", "#b394f0", "#5cc98a", "#f07a70", "#e0b93f", "#76c5d3"),
)

# Causes that people can influence, in the order of the stack.
CAUSES = ("pool", "run cap", "task cap", "executor", "no worker", "paused", "resume", "retry delay", "reschedule", "scheduling")


def day_of(day: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)


def waits_by_day(ax: Axes, rows: list[MartRow], palette: Palette) -> None:
    hours: dict[tuple[str, int], float] = defaultdict(float)
    for row in rows:
        hours[row["cause"], row["day"]] += row["us"] / HOUR_US
    days = sorted({day for _, day in hours})
    causes = [cause for cause in CAUSES if any(hours[cause, day] >= 0.01 for day in days)]
    below = [0.0] * len(days)
    for place, cause in enumerate(causes):
        values = [hours[cause, day] for day in days]
        ax.bar(
            [f"{day_of(day):%d %b}" for day in days],
            values,
            bottom=below,
            color=palette.hues[place % len(palette.hues)],
            label=cause,
        )
        below = [a + b for a, b in zip(below, values, strict=True)]
    if causes:
        ax.legend(frameon=False, labelcolor=palette.ink, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    ax.set_xlim(-0.6, max(len(days), FEWEST_DAYS) - 0.4)  # a day alone is a bar, too, and no wall
    _plain(ax, palette, "What tasks waited for", "hours of all task instances together, by day")


def waits_by_limit(ax: Axes, rows: list[MartRow], palette: Palette) -> None:
    hours: dict[str, float] = defaultdict(float)
    for row in rows:
        if row["limit_name"]:
            hours[f"{row['cause']} {row['limit_name']}"] += row["us"] / HOUR_US
    _bars(ax, sorted(hours.items(), key=lambda item: -item[1])[:MOST_BARS], palette, "{:,.1f} h")
    _plain(ax, palette, "Which limits they waited for", "hours of waiting while that limit was full")


def slots(ax: Axes, rows: list[MartRow], palette: Palette) -> None:
    from matplotlib.dates import ConciseDateFormatter

    limits: dict[str, list[MartRow]] = defaultdict(list)
    for row in rows:
        if row["kind"] in ("pool", "executor") and row["capacity"]:
            limits[f"{row['kind']} {row['name']}"].append(row)
    busiest = sorted(limits, key=lambda name: -sum(row["full_us"] for row in limits[name]))[:MOST_LINES]
    for place, name in enumerate(busiest):
        points = sorted(limits[name], key=lambda row: row["hour"])
        times: list[Any] = [datetime.fromtimestamp(row["hour"] * 3600, UTC) for row in points]
        shares = [100 * row["slot_us"] / HOUR_US / row["capacity"] for row in points]
        hue, marker = palette.hues[place % len(palette.hues)], "o" if len(points) == 1 else None
        ax.plot(times, shares, color=hue, label=name, linewidth=1.4, marker=marker, markersize=4)
    if busiest:
        hours = [row["hour"] for name in busiest for row in limits[name]]
        first, past = (datetime.fromtimestamp(hour * 3600, UTC) for hour in (min(hours), max(*hours, min(hours) + FEWEST_HOURS)))
        left: Any = first - timedelta(minutes=30)
        right: Any = past
        ax.set_xlim(left, right)
        form: Any = ConciseDateFormatter
        ax.xaxis.set_major_formatter(form(ax.xaxis.get_major_locator(), tz="UTC"))
        ax.legend(frameon=False, labelcolor=palette.ink, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    ax.set_ylim(0, 105)
    _plain(ax, palette, "How full limits were", "slots in use, in percent of the capacity, by hour")


def members(ax: Axes, rows: list[MartRow], palette: Palette) -> None:
    found = sorted(rows, key=lambda row: -row["us"])[:MOST_BARS]
    _bars(ax, [(f"{row['dag_id']}/{row['task_id']}", row["us"] / HOUR_US) for row in found], palette, "{:,.1f} h")
    _plain(ax, palette, "Tasks that runs wait for", "hours on the critical path of a run")


Draw = Callable[["Axes", list[MartRow], Palette], None]
CHARTS: dict[str, tuple[Draw, str, tuple[float, float]]] = {  # its function, its mart, inches
    "waits_by_day": (waits_by_day, "wait_by_cause", (5.6, 3.9)),
    "waits_by_limit": (waits_by_limit, "wait_by_cause", (5.6, 3.9)),
    "slots": (slots, "slot_use", (5.6, 3.6)),
    "members": (members, "critical_members", (5.6, 3.6)),
}


def draw(name: str, rows: list[MartRow], palette: Palette) -> bytes:
    """Returns a chart as PNG."""
    import matplotlib
    from matplotlib.figure import Figure

    drawing, _, size = CHARTS[name]
    look: dict[Any, Any] = {
        "font.size": 9,
        "text.parse_math": False,
        "xtick.color": palette.faint,
        "ytick.color": palette.ink,
        "text.color": palette.ink,
    }
    with matplotlib.rc_context(look):
        figure = Figure(figsize=size, facecolor=palette.paper, layout="constrained")
        drawing(figure.add_subplot(facecolor=palette.paper), rows, palette)
        picture = io.BytesIO()
        figure.savefig(picture, dpi=DPI, format="png", metadata={"Software": None})
    return picture.getvalue()


def _bars(ax: Axes, found: list[tuple[str, float]], palette: Palette, form: str) -> None:
    found = found[::-1]
    bars = ax.barh([name for name, _ in found], [value for _, value in found], color=palette.hues[0], height=0.7)
    ax.bar_label(bars, [form.format(value) for _, value in found], padding=4, color=palette.faint, fontsize=8)
    ax.xaxis.set_visible(False)
    ax.margins(x=0.15, y=0.01)


def _plain(ax: Axes, palette: Palette, title: str, subtitle: str) -> None:
    ax.set_title(title, loc="left", fontsize=13, fontweight="bold", color=palette.ink, pad=26)
    ax.annotate(
        subtitle, (0, 1), xycoords="axes fraction", xytext=(0, 10), textcoords="offset points", fontsize=9, color=palette.faint
    )
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(which="both", length=0)
    ax.grid(visible=True, axis="y", color=palette.grid, linewidth=0.6)
    ax.set_axisbelow(True)
