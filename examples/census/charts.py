"""The charts of the report, in a light and in a dark theme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from census.insights import Insights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 192  # twice what a page shows, so sharp on dense screens
SHEET_DPI = 132
MARGIN = 0.12  # inches


@dataclass(frozen=True)
class Theme:
    name: str
    paper: str
    ink: str
    faint: str
    grid: str
    stdlib: str
    packages: str
    third: str
    heat: tuple[str, str]


LIGHT = Theme("light", "#ffffff", "#1d2433", "#667085", "#e6e9f0", "#3b6fd4", "#e07a3f", "#8a63d2", ("#f4f6fb", "#274b9a"))
DARK = Theme("dark", "#171a21", "#e3e7ef", "#98a2b3", "#2a303c", "#6f9df0", "#f0945c", "#b394f0", ("#1d222c", "#8fb4ff"))

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}

Draw = Callable[["Axes", Insights, Theme], None]


def top_modules(ax: Axes, insights: Insights, theme: Theme) -> None:
    rows = insights.top_modules[::-1]
    colors = [theme.stdlib if row["kind"] == "stdlib" else theme.packages for row in rows]
    bars = ax.barh([row["module"] for row in rows], [100 * row["rank"] for row in rows], color=colors, height=0.72)
    ax.bar_label(bars, [f"{100 * row['rank']:.2f} %" for row in rows], padding=4, color=theme.faint, fontsize=8)
    _plain(ax, theme, title="Where Python's weight rests", subtitle="PageRank of modules in the import graph")
    _legend(ax, theme, {"standard library": theme.stdlib, "installed packages": theme.packages}, "lower right")
    ax.xaxis.set_visible(False)
    ax.margins(x=0.12, y=0.01)


def packages(ax: Axes, insights: Insights, theme: Theme) -> None:
    rows = insights.packages[::-1]
    colors = [theme.stdlib if row["kind"] == "stdlib" else theme.packages for row in rows]
    bars = ax.barh([row["package"] for row in rows], [(row["lines"] or 0) / 1000 for row in rows], color=colors, height=0.72)
    ax.bar_label(bars, [f"{(row['lines'] or 0) / 1000:,.0f}" for row in rows], padding=4, color=theme.faint, fontsize=8)
    _plain(ax, theme, title="The biggest packages", subtitle="thousand lines of Python")
    ax.xaxis.set_visible(False)
    ax.margins(x=0.1, y=0.01)


def when(ax: Axes, insights: Insights, theme: Theme) -> None:
    rows = [row for row in insights.when if sum(row[1:])][::-1]
    left = [0.0] * len(rows)
    for place, (label, color) in enumerate(
        {"on import": theme.stdlib, "inside a function": theme.packages, "for type checkers": theme.third}.items(), start=1
    ):
        shares = [100 * row[place] / sum(row[1:]) for row in rows]
        ax.barh([row[0] for row in rows], shares, left=left, color=color, height=0.72, label=label)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    _plain(ax, theme, title="When imports run", subtitle="share of a package's imports, in percent")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=3, frameon=False, labelcolor=theme.ink, fontsize=8)
    ax.set_xlim(0, 100)
    ax.margins(y=0.01)


def depths(ax: Axes, insights: Insights, theme: Theme) -> None:
    deepest = max((max(values, default=0) for values in insights.depths.values()), default=0)
    bins = [edge - 0.5 for edge in range(deepest + 2)]
    values = [insights.depths.get("stdlib", []), insights.depths.get("packages", [])]
    ax.hist(values, bins=bins, stacked=True, color=[theme.stdlib, theme.packages], rwidth=0.85)
    _plain(ax, theme, title="How deep an import goes", subtitle="modules by the longest chain of imports that they start")
    _legend(ax, theme, {"standard library": theme.stdlib, "installed packages": theme.packages}, "upper right")
    ax.set_xlabel("imports in the chain", color=theme.faint, fontsize=8)
    ax.yaxis.set_major_formatter(_thousands)


def popularity(ax: Axes, insights: Insights, theme: Theme) -> None:
    counts = Counter(value for value in insights.popularity if value)
    left, points = sum(counts.values()), []
    for value in sorted(counts):
        points.append((value, left))
        left -= counts[value]
    ax.loglog(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.2, color=theme.stdlib)
    _plain(ax, theme, title="A few are wanted by all", subtitle="modules that are imported by at least so many others")
    ax.set_xlabel("imported by at least", color=theme.faint, fontsize=8)
    ax.xaxis.set_major_formatter(_thousands)
    ax.yaxis.set_major_formatter(_thousands)
    ax.grid(True, color=theme.grid, linewidth=0.8)


def file_lines(ax: Axes, insights: Insights, theme: Theme) -> None:
    bins = [2**n for n in range(17)]
    values = [[max(lines, 1) for lines in insights.file_lines.get(kind, [])] for kind in ("stdlib", "packages")]
    ax.hist(values, bins=bins, stacked=True, color=[theme.stdlib, theme.packages], rwidth=0.85)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(_thousands)
    ax.yaxis.set_major_formatter(_thousands)
    _plain(ax, theme, title="How long files are", subtitle="files by lines, each bar twice the one before")


def matrix(ax: Axes, insights: Insights, theme: Theme) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    names, counts = insights.matrix
    heat = LinearSegmentedColormap.from_list("heat", theme.heat)
    most = max((max(row) for row in counts), default=1)
    shown = [[count or float("nan") for count in row] for row in counts]
    ax.imshow(shown, cmap=heat, norm=LogNorm(1, max(most, 2)), aspect="auto")
    for y, row in enumerate(counts):
        for x, count in enumerate(row):
            if count:
                color = theme.paper if count > most**0.5 else theme.ink
                text = f"{count:,}" if count < 1000 else f"{count / 1000:.1f}k"
                ax.text(x, y, text, ha="center", va="center", fontsize=7, color=color)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.xaxis.tick_top()
    _plain(
        ax, theme, title="Which package imports which", subtitle="pairs of modules, from the row's package to the column's", pad=78
    )


CHARTS: dict[str, tuple[Draw, tuple[float, float]]] = {  # inches
    "top_modules": (top_modules, (5.4, 5.3)),
    "packages": (packages, (5.4, 3.6)),
    "when": (when, (5.4, 3.9)),
    "depths": (depths, (5.4, 3.1)),
    "popularity": (popularity, (5.4, 3.1)),
    "file_lines": (file_lines, (5.4, 3.1)),
    "matrix": (matrix, (5.4, 4.9)),
}
SHEET = (("top_modules", "matrix"), ("packages", "when"), ("depths", "popularity"))


def draw_charts(insights: Insights, theme: Theme, folder: Path) -> dict[str, str]:
    """Writes ``NAME-THEME.png`` for each of :data:`CHARTS`, and returns their paths by NAME."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    with _style(theme):
        for name, (draw, size) in CHARTS.items():
            figure = Figure(figsize=size, facecolor=theme.paper, layout="constrained")
            figure.get_layout_engine().set(w_pad=MARGIN, h_pad=MARGIN)
            draw(figure.add_subplot(facecolor=theme.paper), insights, theme)
            path = folder / f"{name}-{theme.name}.png"
            figure.savefig(path, dpi=DPI)
            paths[name] = str(path)
    return paths


def draw_sheet(insights: Insights, theme: Theme, path: Path) -> Path:
    """Writes the headline and most charts as one picture."""
    from matplotlib.figure import Figure

    with _style(theme):
        figure = Figure(figsize=(15, 18.5), facecolor=theme.paper, layout="constrained")
        figure.get_layout_engine().set(w_pad=MARGIN, h_pad=MARGIN)
        head, body = figure.subfigures(2, 1, height_ratios=(1, 13))
        head.text(0.02, 0.76, "Import census", fontsize=26, fontweight="bold", color=theme.ink, va="center")
        for place, (name, value) in enumerate(insights.headline.items()):
            head.text(0.02 + place * 0.16, 0.30, f"{value:,}", fontsize=18, color=theme.stdlib, va="center")
            head.text(0.02 + place * 0.16, 0.02, name, fontsize=10, color=theme.faint, va="center")
        axes = body.subplot_mosaic([list(row) for row in SHEET], height_ratios=(6.6, 4.6, 3.6))
        for name, ax in axes.items():
            CHARTS[name][0](ax, insights, theme)
        figure.savefig(path, dpi=SHEET_DPI)
    return path


def _style(theme: Theme) -> AbstractContextManager[Any]:
    import matplotlib

    return matplotlib.rc_context(
        {
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.edgecolor": theme.grid,
            "xtick.color": theme.faint,
            "ytick.color": theme.ink,
            "text.color": theme.ink,
        }
    )


def _thousands(value: float, _: int) -> str:
    return f"{value:,.0f}"


def _plain(ax: Axes, theme: Theme, *, title: str, subtitle: str, pad: float = 26) -> None:
    ax.set_title(title, loc="left", fontsize=13, fontweight="bold", color=theme.ink, pad=pad)
    offset = {"xycoords": "axes fraction", "xytext": (0, pad - 16), "textcoords": "offset points"}
    ax.annotate(subtitle, (0, 1), fontsize=9, color=theme.faint, va="bottom", **offset)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(which="both", length=0)
    ax.set_axisbelow(True)


def _legend(ax: Axes, theme: Theme, colors: dict[str, str], place: str) -> None:
    from matplotlib.patches import Patch

    ax.legend(
        handles=[Patch(color=color, label=label) for label, color in colors.items()],
        loc=place,
        frameon=False,
        labelcolor=theme.ink,
        fontsize=8,
    )
