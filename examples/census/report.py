"""The report: one HTML page with everything in it, for light and for dark screens."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from pathlib import Path

from census.insights import Insights

STYLE = """
:root { color-scheme: light dark; --page: #f4f6fa; --paper: #ffffff; --ink: #1d2433; --faint: #667085; --line: #e6e9f0;
        --stdlib: #3b6fd4; --packages: #e07a3f; --good: #1f8a4c; --bad: #c0362c; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1116; --paper: #171a21; --ink: #e3e7ef; --faint: #98a2b3; --line: #2a303c;
        --stdlib: #6f9df0; --packages: #f0945c; --good: #5cc98a; --bad: #f07a70; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.55 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 48px 24px 72px; }
h1 { font-size: 40px; letter-spacing: -0.02em; margin: 0; }
h2 { font-size: 22px; letter-spacing: -0.01em; margin: 56px 0 4px; }
p { margin: 8px 0; max-width: 72ch; }
.faint, th, small { color: var(--faint); }
.columns { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); margin-top: 16px; }
.columns > div { display: grid; gap: 16px; align-content: start; }
.columns + .card { margin-top: 16px; }
.numbers { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); margin: 28px 0; }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 16px 20px; overflow-x: auto; }
.number b { display: block; font-size: 26px; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.card img { width: 100%; display: block; }
.card h3 { margin: 2px 0 8px; font-size: 15px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; font-size: 12px; }
td, th { padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:last-child, th:last-child { padding-right: 0; }
tr:last-child td { border-bottom: 0; }
td.n, th.n { text-align: right; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.chain { line-height: 2; }
.chain code { padding: 2px 7px; border: 1px solid var(--line); border-radius: 6px; white-space: nowrap; }
.stdlib { color: var(--stdlib); } .packages { color: var(--packages); } .good { color: var(--good); } .bad { color: var(--bad); }
"""

MOST_ERRORS = 30  # listed; a page is no place for thousands, silver/errors has them all

Cell = str | int
Columns = tuple[tuple[str, str], ...]  # (title, LEFT or RIGHT)
LEFT, RIGHT = "", "n"


def write_report(insights: Insights, charts: dict[str, dict[str, str]], facts: dict[str, str], path: Path) -> Path:
    """``charts`` are paths of PNG files, by theme and name; ``facts`` say what ran, for the line under the title."""
    pictures = {name: _picture(name, charts["light"][name], charts["dark"][name]) for name in charts["light"]}
    sections = [
        _head(insights, facts),
        _weight(insights, pictures),
        _packages(insights, pictures),
        _depth(insights, pictures),
        _circles(insights),
        _oddities(insights),
        _quality(insights),
    ]
    path.write_text(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>Import census</title><style>{STYLE}</style></head><body><main>{''.join(sections)}</main></body></html>\n",
        encoding="utf-8",
    )
    return path


def _head(insights: Insights, facts: dict[str, str]) -> str:
    cards = [f"<div class='card number'><b>{value:,}</b><small>{name}</small></div>" for name, value in insights.headline.items()]
    line = " · ".join(f"{_text(name)} {_text(value)}" for name, value in facts.items())
    shares = insights.shares
    return (
        f"<h1>Import census</h1><p class='faint'>{line}</p><div class='numbers'>{''.join(cards)}</div>"
        f"<p>The <span class='stdlib'>standard library</span> is {shares['lines']:.0%} of the lines on this machine, gets "
        f"{shares['imports']:.0%} of all imports and carries {shares['rank']:.0%} of the weight. "
        f"{shares['lazy']:.0%} of the imports wait inside functions or serve type checkers alone.</p>"
    )


def _weight(insights: Insights, pictures: dict[str, str]) -> str:
    rows: list[tuple[Cell, ...]] = [
        (place, _code(row["module"], row["kind"]), f"{100 * row['rank']:.2f} %", row["imported_by"], row["imports"])
        for place, row in enumerate(insights.top_modules, start=1)
    ]
    wanted: list[tuple[Cell, ...]] = [(_code(row["module"], row["kind"]), row["imported_by"]) for row in insights.most_imported]
    columns = (("", LEFT), ("module", LEFT), ("rank", RIGHT), ("imported by", RIGHT), ("imports", RIGHT))
    return _section(
        "Where the weight rests",
        "A module passes its weight on to what it imports, so weight gathers where many chains of imports end. PageRank settled "
        f"after {len(insights.changes)} rounds, the last of which moved {insights.changes[-1]:.2g} of all weight.",
        [pictures["top_modules"], _table("Most imported", (("module", LEFT), ("by modules", RIGHT)), wanted)],
        [_table("By PageRank", columns, rows), pictures["popularity"]],
    )


def _packages(insights: Insights, pictures: dict[str, str]) -> str:
    rows: list[tuple[Cell, ...]] = [
        (
            _code(row["package"], row["kind"]),
            row["lines"] or 0,
            row["modules"],
            row["compiled"],
            f"{row['documented'] or 0:.0%}",
            row["used_by"],
        )
        for row in insights.packages
    ]
    numbers = ("lines", "modules", "compiled", "documented", "used by")
    columns = (("package", LEFT), *((name, RIGHT) for name in numbers))
    return _section(
        "Packages",
        "Documented is the share of modules with a docstring; used by counts other packages.",
        [pictures["packages"], pictures["matrix"]],
        [_table("The biggest", columns, rows), pictures["when"]],
    )


def _depth(insights: Insights, pictures: dict[str, str]) -> str:
    return _section(
        "How deep imports go",
        "Counted are imports that run when a module is imported; modules that import each other in a circle count as one step.",
        [pictures["depths"]],
        [pictures["file_lines"]],
    ) + (
        f"<div class='card chain'><h3>The longest chain: {len(insights.chain)} modules, each importing the next</h3>"
        f"{_arrows(insights.chain)}</div>"
    )


def _circles(insights: Insights) -> str:
    rows: list[tuple[Cell, ...]] = [(row["modules"], _arrows(row["example"])) for row in insights.cycles]
    return _section(
        "Circles",
        "Groups of modules that reach each other by imports that run on import. Python copes, as long as nobody asks too early.",
        [_table("The largest", (("modules", RIGHT), ("a shortest way round", LEFT)), rows)],
    )


def _oddities(insights: Insights) -> str:
    errors: list[tuple[Cell, ...]] = [
        (_code("/".join(Path(row["path"]).parts[-4:])), _text(row["reason"]), row["error_line"] or "")
        for row in insights.errors[:MOST_ERRORS]
    ]
    missing: list[tuple[Cell, ...]] = [(_code(row["name"]), row["modules"]) for row in insights.unresolved]
    columns = (("file", LEFT), ("reason", LEFT), ("line", RIGHT))
    return _section(
        "Oddities",
        "Files that no parser of this Python reads, most of them on purpose; and names that are imported but not installed.",
        [_table(f"Unreadable files: {len(insights.errors)}", columns, errors)],
        [_table("Wanted, not found", (("name", LEFT), ("by modules", RIGHT)), missing)],
    )


def _quality(insights: Insights) -> str:
    verdict = {True: "<span class='good'>passed</span>", False: "<span class='bad'>failed</span>"}
    rows: list[tuple[Cell, ...]] = [(verdict[row["passed"]], _text(row["name"]), _text(row["found"])) for row in insights.quality]
    return _section(
        "Data quality",
        "What the pipeline checked before it wrote this page; had one check failed, there would be no page.",
        [_table("Checks", (("", LEFT), ("check", LEFT), ("found", LEFT)), rows)],
    )


def _section(title: str, text: str, *columns: list[str]) -> str:
    """``columns`` of cards stand side by side where there is room."""
    beside = "".join(f"<div>{''.join(cards)}</div>" for cards in columns)
    return f"<h2>{_text(title)}</h2><p class='faint'>{_text(text)}</p><div class='columns'>{beside}</div>"


def _table(title: str, columns: Columns, rows: Iterable[tuple[Cell, ...]]) -> str:
    """Cells that are text are HTML already."""
    head = "".join(f"<th class='{side}'>{_text(name)}</th>" for name, side in columns)
    lines = []
    for row in rows:
        shown = [cell if isinstance(cell, str) else f"{cell:,}" for cell in row]
        lines.append("".join(f"<td class='{side}'>{cell}</td>" for cell, (_, side) in zip(shown, columns, strict=True)))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<div class='card'><h3>{_text(title)}</h3><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _picture(name: str, light: str, dark: str) -> str:
    light_source, dark_source = (
        f"data:image/png;base64,{base64.b64encode(Path(path).read_bytes()).decode()}" for path in (light, dark)
    )
    return (
        f"<div class='card'><picture><source srcset='{dark_source}' media='(prefers-color-scheme: dark)'>"
        f"<img src='{light_source}' alt='Chart: {name.replace('_', ' ')}'></picture></div>"
    )


def _arrows(names: Iterable[str]) -> str:
    return " → ".join(_code(name) for name in names)


def _code(text: str, kind: str = "") -> str:
    return f"<code class='{kind}'>{_text(text)}</code>" if kind else f"<code>{_text(text)}</code>"


def _text(text: object) -> str:
    return html.escape(str(text))
