"""What is in ``deploy/`` can be imported as it is, and asks for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from evenflow.core.meter import Metric, MetricKind
from evenflow.core.metrics import METRICS
from tests.house.project import ROOT

DASHBOARD = json.loads((ROOT / "deploy/grafana/evenflow.json").read_text(encoding="utf-8"))
ALERTS = ROOT / "deploy/prometheus/alerts.yaml"
SUFFIXES = {MetricKind.COUNTER: ("_total",), MetricKind.GAUGE: ("",), MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count")}
SERIES = {metric.name + suffix: metric for metric in METRICS for suffix in SUFFIXES[metric.kind]}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for rule in rules():
        yield rule["alert"], rule["expr"]


def labels_of(metric: Metric) -> set[str]:
    return {*metric.own_labels, *metric.labels}


@pytest.mark.parametrize(("title", "expression"), list(expressions()), ids=lambda value: value[:40])
def test_expression_asks_for_what_there_is(title: str, expression: str) -> None:
    named = set(re.findall(r"evenflow_\w+", expression))
    assert named, "it asks for something"
    assert named - SERIES.keys() == set(), title
    known = set().union(*(labels_of(SERIES[name]) for name in named)) | {"le"}
    grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")}
    assert grouped <= known, title
    for name, matchers in re.findall(r"(evenflow_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*(?:=|!=|=~)\s*\"", matchers)) <= labels_of(SERIES[name]), title
    for name in named:
        if SERIES[name].kind is not MetricKind.GAUGE:
            assert re.search(rf"(rate|increase)\({name}", expression), f"{title}: a counter says nothing by itself"


def test_the_dashboard_has_what_grafana_needs() -> None:
    assert DASHBOARD["uid"] == "evenflow"
    assert DASHBOARD["title"]
    assert DASHBOARD["schemaVersion"] >= 36
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]
    for panel in panels():
        assert panel["title"]
        assert panel["type"] in {"timeseries", "stat", "table"}
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"], panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}


def test_prometheus_finds_the_services() -> None:
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yaml").read_text(encoding="utf-8"))
    assert configuration["rule_files"] == [ALERTS.name]
    (job,) = configuration["scrape_configs"]
    assert job["http_sd_configs"][0]["url"].endswith("/metrics/targets")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_the_alerts() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_metrics_are_named_as_prometheus_wants() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"evenflow(_[a-z]+)+", metric.name), metric.name
        assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket")), metric.name
        assert metric.meaning.endswith("."), metric.name
        assert not set(metric.own_labels) & set(metric.labels), metric.name
        if metric.kind is MetricKind.HISTOGRAM:
            assert metric.name.endswith("_seconds"), "the bounds are seconds"
