"""The report: one self-contained HTML page of the marts, for light and for dark screens."""

from __future__ import annotations

import base64
import html
from collections import defaultdict
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenflow.insights.engines import DuckDb
from evenflow.insights.lake import MartRow
from evenflow.insights.plots import CHARTS, DARK, HOUR_US, LIGHT, day_of, draw

MOST_ROWS = 20  # of a table; the marts have all

Cells = Iterable[tuple[Any, ...]]


def write_report(engine: DuckDb, lake: Path, target: Path) -> Path:
    """Writes the report of marts that exist."""
    marts = {
        name: engine.rows(lake, name)
        for name in (
            "wait_by_cause",
            "slot_use",
            "critical_members",
            "durations",
            "anomalies",
            "costs",
            "application_costs",
            "worth_raising",
            "violations",
            "lags",
        )
    }
    pictures = {name: _picture(name, marts[mart]) for name, (_, mart, _) in CHARTS.items()}
    style = (files("evenflow.insights") / "report.css").read_text(encoding="utf-8")
    body = "".join(
        (
            _head(marts),
            _proof(marts["violations"], known=bool(marts["wait_by_cause"])),
            _section(
                "Waiting",
                "A second counts once, for the narrowest limit that was full in it.",
                pictures["waits_by_day"],
                pictures["waits_by_limit"],
            ),
            _section(
                "What more would be worth",
                "With so many more slots, the first of those that waited would not have.",
                _advice(marts["worth_raising"]),
                pictures["slots"],
            ),
            _section(
                "What runs wait for",
                "From the task that ended last back through the upstream that ended last.",
                pictures["members"],
                _members(marts["critical_members"]),
            ),
            _section(
                "Durations",
                "A task drifts when the median of its last day is a quarter off that of the days before.",
                _drifts(marts["durations"]),
                _anomalies(marts["anomalies"]),
            ),
            _section("Lag and cost", "", _lags(marts["lags"]), _costs(marts["costs"])),
            *_spark(marts["application_costs"]),
        )
    )
    target.write_text(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>Evenflow: history</title><style>{style}</style></head><body><main>{body}</main></body></html>\n",
        encoding="utf-8",
    )
    return target


def _head(marts: dict[str, list[MartRow]]) -> str:
    days = sorted({row["day"] for row in marts["wait_by_cause"]})
    waited = sum(row["us"] for row in marts["wait_by_cause"] if row["cause"] not in ("running", "deferred", "upstream"))
    numbers = {
        "tries": f"{int(sum(row['tries'] for row in marts['costs'])):,}",
        "DAGs": f"{len({row['dag_id'] for row in marts['costs']}):,}",
        "hours of running": _hours(sum(row["run_us"] for row in marts["costs"])),
        "hours of waiting": _hours(waited),
        "violations": f"{len(marts['violations']):,}",
    }
    cards = "".join(f"<div class='card number'><b>{value}</b><small>{name}</small></div>" for name, value in numbers.items())
    first, last = (f"{day_of(day):%d %B %Y}" for day in (days[0], days[-1])) if days else ("", "")
    span = (f"{first}, UTC" if first == last else f"{first} to {last}, UTC") if days else "no history yet"
    return f"<h1>Evenflow: history</h1><p class='faint'>{span}</p><div class='numbers'>{cards}</div>"


def _proof(violations: list[MartRow], *, known: bool) -> str:
    text = "Every move is legal and happened once, and no task started first while a limit of its was full."
    if not violations and not known:
        return "<h2>Proof</h2><p>There is no history to check yet. Type: evenflow insights export</p>"
    if not violations:
        return f"<h2>Proof</h2><p><span class='good'>Nothing is wrong.</span> {text}</p>"
    rows = [(_text(v["kind"]), v["run_key"], _text(v["what"])) for v in violations[:MOST_ROWS]]
    return (
        f"<h2>Proof</h2><p><span class='bad'>{len(violations):,} violations.</span> What should hold: {text}</p>"
        f"{_table('The first of them', ('kind', 'run', 'what'), rows)}"
    )


def _first(rows: list[MartRow]) -> list[MartRow]:
    """Returns the rows with the highest worth, as their mart rates it."""
    return sorted((row for row in rows if row["worth"] is not None), key=lambda row: -row["worth"])[:MOST_ROWS]


def _advice(rows: list[MartRow]) -> str:
    cells = [
        (f"{_text(r['cause'])} <b>{_text(r['limit_name'])}</b> + {r['more']}", _hours(r["saved_us"]), _hours(r["wait_us"]))
        for r in _first(rows)
    ]
    return _table("Would have saved", ("more of", "hours saved", "of hours waited"), cells)


def _members(rows: list[MartRow]) -> str:
    found = sorted(rows, key=lambda row: -row["us"])[:MOST_ROWS]
    cells = [(_code(f"{r['dag_id']}/{r['task_id']}"), f"{r['on_path']:,} of {r['runs']:,}", f"{r['share']:.0%}") for r in found]
    return _table("On the critical path", ("task", "runs", "of the path"), cells)


def _drifts(rows: list[MartRow]) -> str:
    cells = [
        (_code(f"{r['dag_id']}/{r['task_id']}"), _seconds(r["before_p50_us"]), _seconds(r["last_p50_us"]), f"{r['drift']:.2f}")
        for r in _first(rows)
    ]
    return _table("Drifting", ("task", "median before", "last day", "times"), cells)


def _anomalies(rows: list[MartRow]) -> str:
    cells = [
        (_code(f"{r['dag_id']}/{r['task_id']}"), _text(r["run_id"]), _seconds(r["us"]), _seconds(r["p50_us"])) for r in _first(rows)
    ]
    return _table("Far longer than usual", ("task", "run", "ran", "usually"), cells)


def _lags(rows: list[MartRow]) -> str:
    found = sorted(rows, key=lambda row: -row["wait_p99_us"])[:MOST_ROWS]
    cells = [
        (
            _code(r["dag_id"]),
            f"{day_of(r['day']):%d %b}",
            _seconds(r["wait_p50_us"]),
            _seconds(r["wait_p90_us"]),
            _seconds(r["wait_p99_us"]),
        )
        for r in found
    ]
    return _table("Waiting of a try", ("DAG", "day", "p50", "p90", "p99"), cells)


def _costs(rows: list[MartRow]) -> str:
    of_dag: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        total = of_dag[row["owner"], row["dag_id"]]
        for place, name in enumerate(("tries", "slot_us", "wait_us")):
            total[place] += int(row[name])
    found = sorted(of_dag.items(), key=lambda item: -item[1][1])[:MOST_ROWS]
    cells = [
        (_text(owner), _code(dag_id), f"{int(tries):,}", _hours(slot_us), _hours(wait_us))
        for (owner, dag_id), (tries, slot_us, wait_us) in found
    ]
    return _table("Cost", ("owner", "DAG", "tries", "slot hours", "hours waited"), cells)


def _spark(rows: list[MartRow]) -> list[str]:
    """Returns nothing if no task used Spark."""
    names = ("core_us", "task_us", "gc_us", "shuffle_bytes", "spilled_bytes")
    of_task: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0] * (1 + len(names)))
    for row in rows:
        total = of_task[row["owner"], row["dag_id"], row["task_id"]]
        for place, value in enumerate((1, *(int(row[name]) for name in names))):
            total[place] += value
    found = sorted(of_task.items(), key=lambda item: -item[1][1])[:MOST_ROWS]
    cells = [
        (
            _text(owner),
            _code(f"{dag_id}.{task_id}"),
            f"{took[0]:,}",
            *map(_hours, took[1:4]),
            *(f"{n / 2**30:,.1f}" for n in took[4:]),
        )
        for (owner, dag_id, task_id), took in found
    ]
    titles = ("owner", "task", "applications", "core hours", "task hours", "of these GC", "shuffled GiB", "spilled GiB")
    return (
        [_section("Spark", "Core hours are paid for, task hours are used.", _table("Cost by task", titles, cells))] if rows else []
    )


def _section(title: str, text: str, *cards: str) -> str:
    return f"<h2>{_text(title)}</h2><p class='faint'>{_text(text)}</p><div class='columns'>{''.join(cards)}</div>"


def _table(title: str, columns: Iterable[str], rows: Cells) -> str:
    """Cells are HTML already; all columns but the first are right-aligned."""
    head = "".join(f"<th>{_text(name)}</th>" for name in columns)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows) or "<tr><td>None.</td></tr>"
    return f"<div class='card'><h3>{_text(title)}</h3><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def _picture(name: str, rows: list[MartRow]) -> str:
    light, dark = (f"data:image/png;base64,{base64.b64encode(draw(name, rows, palette)).decode()}" for palette in (LIGHT, DARK))
    return (
        f"<div class='card'><picture><source srcset='{dark}' media='(prefers-color-scheme: dark)'>"
        f"<img src='{light}' alt='Chart: {name.replace('_', ' ')}'></picture></div>"
    )


def _hours(us: float) -> str:
    return f"{us / HOUR_US:,.1f}"


def _seconds(us: float) -> str:
    return f"{us / 1e6:,.1f} s"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: object) -> str:
    return html.escape(str(text))
