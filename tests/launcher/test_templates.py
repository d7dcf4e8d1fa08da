"""The template of pods, which a launcher reads from a file that an option of the executor may name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.pods.options import read_options
from evenflow.errors import SettingsError
from evenflow.launcher.executor import KubernetesSettings
from evenflow.launcher.kubernetes.template import read_template, with_address


def test_what_is_wrong_with_a_file_is_told_without_its_content(tmp_path: Path) -> None:
    """R-SE1: whoever may set an option names a file of the launcher's host, and everybody sees the reason."""
    file = tmp_path / "environment"
    file.write_text("A=1\nDATABASE_URL: postgresql: //evenflow:open-sesame@db/evenflow\n")
    with pytest.raises(SettingsError, match="is no YAML in line 2: mapping values are not allowed here") as refused:
        read_template(read_options({"template": str(file)}), "")
    assert "open-sesame" not in str(refused.value)


class _NoTokens:
    async def installation(self) -> str:
        return "i"

    async def for_worker_of(self, epoch: int, queue: str, name: str) -> str:
        return "t"


def _told(tmp_path: Path, spec: dict[str, Any], **environment: str) -> str | None:
    """Returns where pods of this template find the API, as the launcher tells them."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps({"kind": "Pod", "spec": spec}))
    options = read_options({"image": "etl:1.4"})
    settings = KubernetesSettings(
        cluster="", template=str(file), tokens=_NoTokens(), environment=environment, url_here="http://127.0.0.1:8974"
    )
    return with_address(read_template(options, str(file)), settings, options.runs).get("EVENFLOW_API_URL")


def test_a_launcher_says_when_nothing_tells_pods_where_the_api_is(tmp_path: Path) -> None:
    """R-EX2: the default is the launcher's own host, which a pod does not reach, unless it shares the network of that."""
    with pytest.raises(
        SettingsError, match=r"127\.0\.0\.1 is in a pod the pod itself.* export EVENFLOW_API_URL=https://evenflow-api"
    ):
        _told(tmp_path, {})
    assert _told(tmp_path, {"hostNetwork": True}) == "http://127.0.0.1:8974"
    assert _told(tmp_path, {}, EVENFLOW_API_URL="https://evenflow-api:8974") == "https://evenflow-api:8974"
    of_template = {"containers": [{"name": "try", "env": [{"name": "EVENFLOW_API_URL", "value": "https://evenflow-api:8974"}]}]}
    assert _told(tmp_path, of_template) is None
