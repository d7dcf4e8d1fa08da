"""The Spark UI of a real session, as people read it through the API (R-SP3)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenflow.api.refusals import Refused
from evenflow.api.rest import spark_ui_pages
from evenflow.errors import SettingsError
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for
from evenflow.spark.target import target_of
from tests.spark.servers import standalone_cluster

BASE = "/api/v1/dags/d/runs/r/tasks/t/spark-ui/-1"


def told_by(uri: str, conf: dict[str, str], read: list[str]) -> dict[str, Any]:
    """What the pages ``read`` say while a session lives that has had a job, and beside them what the session has told."""
    told: dict[str, Any] = {}
    conn = Connection.parse("spark_default", uri)
    with session_for(conn, app_name="x", conf=conf, progress=lambda *_: None, keep=told.__setitem__) as spark:
        spark.range(10).selectExpr("sum(id)").collect()
        ui = spark_ui_pages.ui_kept(told["spark_ui"])
        shown = {path: asyncio.run(spark_ui_pages.show(ui, path, "", BASE)) for path in read}
        assert ui.application_id == spark.sparkContext.applicationId
    with pytest.raises(Refused, match="the application does not answer at"):
        asyncio.run(spark_ui_pages.look(ui))
    return shown


@pytest.mark.spark
def test_pages_of_a_local_driver_lead_to_each_other_below_the_api() -> None:
    shown = told_by(
        "spark-local://?cores=1&ui=true",
        {},
        ["", "jobs/", "stages/", "SQL/", "environment/", "static/webui.css", "api/v1/applications"],
    )
    assert (shown[""].status_code, shown[""].headers["Location"]) == (303, f"{BASE}/jobs/")
    for path in ("jobs/", "stages/", "SQL/", "environment/"):
        page = bytes(shown[path].body).decode()
        assert shown[path].status_code == 200
        links = re.findall(r"(?:href|src)=[\"'](/[^\"']*)", page)
        assert f"{BASE}/stages/" in links
        assert [link for link in links if not link.startswith(f"{BASE}/")] == []
        assert "kill/?id" not in page
    assert shown["static/webui.css"].headers["Content-Type"].startswith("text/css")
    (application,) = json.loads(shown["api/v1/applications"].body)
    assert application["name"] == "x"


@pytest.mark.spark
def test_a_session_on_a_cluster_that_was_told_its_base_leads_below_the_api_too(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as uri:
        shown = told_by(f"{uri}?ui=true", {"spark.ui.proxyBase": "/proxy/app"}, ["", "executors/", "jobs/"])
    assert shown[""].headers["Location"] == f"{BASE}/jobs/"
    assert f"{BASE}/executors/" in bytes(shown["jobs/"].body).decode()
    assert "/proxy/app/" not in re.sub(r"<script.*?</script>", "", bytes(shown["jobs/"].body).decode(), flags=re.DOTALL)


def test_where_the_page_of_a_connect_server_is_says_its_connection() -> None:
    target = target_of(Connection.parse("c", "sc://h:1/?token=x&ui=http://h:4040"), {}, cpus=1)
    assert (target.ui, target.url) == ("http://h:4040", "sc://h:1/;token=x")
    with pytest.raises(SettingsError, match="write where its Spark UI is: ui=http://HOST:4040"):
        target_of(Connection.parse("c", "sc://h:1/?ui=true"), {}, cpus=1)
