"""What services say in their logs is declared, and said in one way."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from evenflow.core.observation import FACTS, TRACE, LogLevel, Observable
from scripts.reference.observations import OBSERVERS, declared
from tests.house.project import imported_names, nodes, source_modules

DECLARED = [fact for observer in OBSERVERS for fact in declared(observer)]
LOGGING = {
    "evenflow.airflow.running.log_lines": "makes lines for people of what a task of Airflow logs",
    "evenflow.airflow.running.task_log": "is the log of tasks of Airflow, as the SDK sets it up",
    "evenflow.telemetry.observing": "the interpreter",
    "evenflow.runtime.logging": "says how lines look",
    "evenflow.runtime.up.service_log": "reads levels of lines, and keeps them in a file that turns over",
    "evenflow.cli.commands.up": "shows lines by their level",
    "evenflow.cli.run.place": "shows lines by their level",
    "evenflow.sdk.logged": "the log of what authors write",
    "evenflow.forking.interpreter": "sets back what a try has changed of it",
    "evenflow.connect_server.jvm": "keeps what a server of Spark says, in a file that turns over",
    "evenflow.spark.session": "quietens a client of Spark that logs what its driver tells already",
    "evenflow.worker.task_process": "leads what authors log to the log of their task",
    "evenflow.triggerer.host_process": "leads what authors log to the log of their trigger",
}
SPEAKING = {"cli", "sdk", "spark", "triggers", "insights"}
WARNING_AUTHORS = "evenflow.airflow.airflow2."  # of what is old in a file that is loaded, which is told with the file
PAST_THE_LOG = {"print", "sys.stdout.write", "sys.stderr.write", "warnings.warn"}
TYPES = {"str", "int", "float", "bool"}
SECRETS = {"token", "password", "secret", "credential", "header", "environment", "body"}
OTHER_KEYS = {"event", "fact", "level", "logger", "timestamp", "exception"}


def _calls(path: Path, name: str) -> list[ast.Call]:
    return [
        node
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")) == name
    ]


def test_nobody_writes_to_the_log_but_the_interpreter() -> None:
    """And who is named for another reason has one."""
    users = {name for name, path in source_modules().items() if imported_names(path) & {"logging", "structlog"}}
    assert users == set(LOGGING)


def test_services_say_nothing_past_their_log() -> None:
    """Output is for commands, and for what runs with authors' code: it is the log of a task or trigger."""
    said = [
        (module, name)
        for module, path in source_modules().items()
        if module.removeprefix("evenflow.").partition(".")[0] not in SPEAKING and not module.startswith(WARNING_AUTHORS)
        for node in nodes(path)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in PAST_THE_LOG
    ]
    assert said == []


def test_all_that_is_declared_is_listed() -> None:
    assert {fact.observer for fact in FACTS if fact.observer.startswith("evenflow.")} == {f"evenflow.{name}" for name in OBSERVERS}


@pytest.mark.parametrize("fact", DECLARED, ids=lambda fact: f"{fact.observer}.{fact.name}")
def test_fields_are_plain_values_and_no_secrets(fact: Observable) -> None:
    """No object that shows more than was meant, and nothing that is named as a secret."""
    assert {kind for name, kind in fact.fields.items() if name != TRACE} <= TYPES
    assert not {word for name in fact.fields for word in name.split("_")} & SECRETS
    assert not set(fact.fields) & OTHER_KEYS
    assert fact.sentence or (fact.level is LogLevel.SILENT and fact.counts)


def test_a_field_has_one_type_wherever_it_stands() -> None:
    """So what keeps logs can have a column for it."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for fact in DECLARED:
        for name, kind in fact.fields.items():
            kinds[name].add(kind)
    kinds.pop(TRACE)
    assert {name: several for name, several in kinds.items() if len(several) > 1} == {}


def test_a_name_has_one_meaning() -> None:
    """Alerts are by name: what two packages observe under one is the same fact."""
    meanings: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for fact in DECLARED:
        meanings[fact.name].add((fact.level, fact.sentence, *fact.fields.items()))
    assert {name: several for name, several in meanings.items() if len(several) > 1} == {}


def test_sentences_are_told_apart() -> None:
    said = Counter((fact.observer, fact.sentence) for fact in DECLARED if fact.sentence)
    assert [sentence for sentence, times in said.items() if times > 1] == []


def test_each_is_observed_and_with_a_meter_what_is_counted() -> None:
    met: set[tuple[str, str]] = set()
    facts = {(fact.observer, fact.name): fact for fact in DECLARED}
    wrong = []
    for module, path in source_modules().items():
        observer = ".".join(module.split(".")[:2])
        named = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        named |= {node.id for node in nodes(path) if isinstance(node, ast.Name)}
        met |= {(observer, name) for name in named}
        for call in _calls(path, "observe"):
            made = call.args[0]
            if isinstance(made, ast.Call) and not isinstance(call.func, ast.Attribute):
                name = made.func.attr if isinstance(made.func, ast.Attribute) else getattr(made.func, "id", "")
                if (fact := facts.get((observer, name))) and bool(fact.counts) != (len(call.args) == 2):
                    wrong.append((module, name))
    assert wrong == []
    assert set(facts) - met == set(), "declared, and observed by nobody"


def test_what_a_line_counts_is_counted_nowhere_else() -> None:
    counted = {metric.name for fact in DECLARED for metric, _, _ in fact.counts}
    from evenflow.core import metrics

    names = {name for name, value in vars(metrics).items() if getattr(value, "name", None) in counted}
    twice = [
        (module, ast.unparse(call))
        for module, path in source_modules().items()
        for call in [*_calls(path, "count"), *_calls(path, "observe")]
        if call.args
        and ast.unparse(call.args[0]).removeprefix("metrics.") in names
        and not (len(call.args) > 1 and ast.unparse(call.args[1]) == "0")
    ]
    assert twice == []
