"""SQL lives in files, one statement each, and every name of one is right: in the source, in the schema, in the database."""

from __future__ import annotations

import ast
import re
from itertools import product

import psycopg
import pytest

from evenflow.core.selection.order import DispatchClass, given_before
from evenflow.core.states import FINISHED, TaskState
from evenflow.store.db.sql import sql
from tests.house.project import SOURCE, STATEMENTS, nodes, source_modules, strings

FILES = {path.relative_to(STATEMENTS).with_suffix("").as_posix(): path for path in sorted(STATEMENTS.rglob("*.sql"))}
AREAS = "|".join(sorted({name.partition("/")[0] for name in FILES}))
CLAUSES = {path.stem: path for path in sorted((STATEMENTS.parent / "clauses").glob("*.sql"))}
NAME = re.compile(rf"({AREAS})/[a-z_]+")


MOVES_TO_ONE = {  # statements for moves that all lead to one state, and why they need not be told
    "tasks/insert_dispatches": "whatever has a dispatch is queued",
}


def without_comments(text: str) -> str:
    """The statement with comments and quoted strings taken out."""
    return re.sub(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", "", text, flags=re.DOTALL)


def test_there_are_statements() -> None:
    assert len(FILES) > 20


def test_every_statement_is_used_and_every_use_has_a_statement() -> None:
    named = set().union(*(strings(path) for path in source_modules().values()))
    used = {text for text in named if NAME.fullmatch(text)}
    assert {"used, but no file": used - FILES.keys(), "file, but not used": FILES.keys() - used} == {
        "used, but no file": set(),
        "file, but not used": set(),
    }


def test_the_schema_names_statements_that_exist() -> None:
    """Each index says which statement it serves."""
    schema = (SOURCE / "store" / "schema.sql").read_text(encoding="utf-8")
    indexes = re.findall(r"^create (?:unique )?index .*", schema, flags=re.MULTILINE)
    silent = [index for index in indexes if "--" not in index]
    served = " ".join(index.partition("--")[2] for index in indexes)
    named = set(re.findall(r"(?<![\w/])[a-z]+/[a-z_]+(?![\w/])", served))
    assert {"unknown": named - FILES.keys(), "silent": silent} == {"unknown": set(), "silent": []}


def test_lines_are_as_wide_as_those_of_modules() -> None:
    wide = [
        f"{path.name}:{number}"
        for path in (*FILES.values(), *CLAUSES.values())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 132
    ]
    assert wide == []


@pytest.mark.parametrize("name", FILES)
def test_statement(name: str) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    assert text.startswith("--"), "begins with a comment: what it does, and why it locks as it does"
    assert without_comments(text).strip().rstrip(";").count(";") == 0, "one statement a file"
    assert re.fullmatch(r"[a-z]+/[a-z]+(_[a-z]+)*", name), "area/verb_noun"
    assert "%s" not in without_comments(text), "binds by name"
    lock = re.search(r"\bfor (no key )?(update|share|key share)\b", without_comments(text), flags=re.IGNORECASE)
    assert not lock or re.search(r"lock|share", " ".join(re.findall(r"--.*", text)), flags=re.IGNORECASE), (
        "the lock clause is explained"
    )


def test_no_statement_moves_a_task_or_run_by_a_state_of_its_own() -> None:
    """``core/states.py`` says what a move leads to, also of virtual instances; a statement is told."""
    told = re.compile(r"%\(states?\)s|c\.state|excluded\.virtual_state")
    own = {}
    for name, path in FILES.items():
        text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
        for table, change in re.findall(
            r"\b(task_instance|mapped_task|dag_run)\b(?:(?!\bupdate\b).)*?\bset\s+((?:virtual_)?state\s*=[^,\n]*)", text, re.DOTALL
        ):
            if not told.search(change):
                own[name] = f"{table}: {change}"
    assert own.keys() == MOVES_TO_ONE.keys(), own


def test_virtual_instances_are_moved_in_one_place() -> None:
    """By the table of moves, as others are."""
    changed = {
        module
        for module, path in source_modules().items()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "virtual_state" and isinstance(node.ctx, ast.Store)
    }
    assert changed == {"evenflow.core.flow.state"}


def test_lanes_are_sorted_by_their_key_alone() -> None:
    """``core/selection/order.py`` is the order: a statement that reads lanes names none of what keys are made of."""
    parts = re.compile(r"order by[^()]*\b(run_priority|priority|run_after|lane_id)\b")
    lanes = [
        name
        for name, path in FILES.items()
        if re.search(r"\b(from|join) lane\b", without_comments(path.read_text(encoding="utf-8")))
    ]
    assert lanes
    assert [name for name in lanes if parts.search(without_comments(FILES[name].read_text(encoding="utf-8")))] == []


def test_every_clause_is_said_by_several_and_nobody_says_it_otherwise() -> None:
    """May runs of this DAG begin, which of two tries or runs is first, what is frozen: each stands once."""
    texts = {name: without_comments(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
    named = {clause: [name for name, text in texts.items() if f"{{{{{clause}}}}}" in text] for clause in CLAUSES}
    assert set(re.findall(r"\{\{(\w+)\}\}", " ".join(texts.values()))) == CLAUSES.keys()
    assert {clause: names for clause, names in named.items() if len(names) < 2} == {}
    silent = [clause for clause, path in CLAUSES.items() if not path.read_text(encoding="utf-8").startswith("--")]
    assert silent == [], "begins with a comment: what it says, and of what"
    own = {
        "takes_runs": r"state = .draining. or",
        "tries_in_order": r"order by[^()]*\bpriority desc[^()]*\bepoch",
        "runs_in_order": r"order by[^()]*\bpriority desc, (\w\.)?run_after",
        "is_frozen": r"kind = .system. or (\w\.)?kind = .queue. and",
        "stored_lane": r"extract\(epoch from \w\.since\)",
        "is_healthy, takes_work, may_claim": r"beat_at > now\(\) - make_interval\(secs => %\(lease_s\)s\)",
        "finished, finished_virtually": r"\('success', 'failed', 'skipped', 'upstream_failed'",
        "current_try": r"from dispatch where epoch = %\(epoch\)s for key share",
        "replaces_xcom": r"on conflict \(run_key, task_index, map_index, key\)",
        "is_unseen": r"pg_visible_in_snapshot",
        "tries_of_claim": r"left join mine d on true",
        "rows_of_instance": r"left join dispatch d on d\.epoch = t\.epoch\s+left join service",
        "recorded_asset_event": r"\be\.alias, e\.partition",
    }
    schema = (SOURCE / "store" / "schema.sql").read_text(encoding="utf-8")
    told = {name: re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8")) for name, path in FILES.items()} | {
        "schema.sql": schema
    }
    assert {clause: [name for name, text in told.items() if re.search(words, text)] for clause, words in own.items()} == {
        clause: [] for clause in own
    }


def test_statements_know_the_states_that_are_over() -> None:
    """``core/states.py`` says which they are; virtual instances of a task that is removed as a whole wait for it to expand anew."""
    told = {name: re.findall(r"'(\w+)'", CLAUSES[name].read_text(encoding="utf-8")) for name in ("finished", "finished_virtually")}
    assert sorted(told["finished"]) == sorted(FINISHED)
    assert sorted(told["finished_virtually"]) == sorted(FINISHED - {TaskState.REMOVED})


def test_indexes_have_the_orders_of_the_clauses(db: psycopg.Connection) -> None:
    """So what comes first is found first, whatever waits."""
    for index, clause in {"dispatch_waiting": "tries_in_order", "dag_run_waiting": "runs_in_order"}.items():
        order = re.sub(r"--[^\n]*|\b\w\.|\s", "", CLAUSES[clause].read_text(encoding="utf-8")).replace("desc", " DESC")
        (definition,) = db.execute("select pg_get_indexdef(%s::regclass)", [index]).fetchone() or ("",)
        assert order in re.sub(r", ", ",", definition), (clause, definition)


def test_a_turn_gives_tries_out_in_the_order_of_claims(db: psycopg.Connection) -> None:
    """Those of one turn have one transaction: ``given_before`` sorts them as the clause does."""
    priorities = (0, 5, -5, 1 << 32, -1 << 32)
    tries = [(one, priority, epoch) for one, priority, epoch in product(DispatchClass, priorities, (2, 3, 1))]
    clause = CLAUSES["tries_in_order"].read_text(encoding="utf-8")
    columns = [list(column) for column in zip(*tries, strict=True)]
    told = "unnest(%s::int[], %s::bigint[], %s::bigint[]) as t (class, priority, epoch)"
    asked = f"select class, priority, epoch from (select t.*, pg_current_xact_id() as xact from {told}) as d order by {clause}"
    assert db.execute(asked.encode(), columns).fetchall() == sorted(tries, key=lambda each: given_before(*each))


def test_statements_fit_the_schema(db: psycopg.Connection) -> None:
    """PostgreSQL parses, and plans, every statement: no column, table or type is misspelt."""
    wrong = {}
    for name in FILES:
        reason = _cannot_be_prepared(db, name)
        if reason:
            wrong[name] = reason
    assert wrong == {}


def _cannot_be_prepared(db: psycopg.Connection, name: str) -> str | None:
    binds: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${binds.setdefault(match[1], len(binds) + 1)}"

    statement = re.sub(r"%\((\w+)\)s", number, sql(name).decode()).replace("%%", "%")
    try:
        db.execute(f"prepare statement_under_test as {statement}".encode())
        db.execute("deallocate statement_under_test")
    except psycopg.errors.IndeterminateDatatype:
        return f"{name}: cast its binds, as in %(key)s::bigint"
    except psycopg.errors.FeatureNotSupported:
        return None  # not a statement that can be prepared, such as LOCK or LISTEN
    except psycopg.Error as error:
        return str(error).strip()
    return None
