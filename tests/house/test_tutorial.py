"""The first tutorial, followed to the letter on a whole Evenflow."""

from __future__ import annotations

import shlex

import pytest

from tests.house.examples import commands_of, examples
from tests.house.project import DOCS
from tests.running import RunningEvenflow, evenflow_json
from tests.waiting import wait_until

pytestmark = pytest.mark.system

PAGE = DOCS / "tutorials" / "first-pipeline.md"
SAYS = {
    "evenflow run dags/weather.py": "succeeded",
    "evenflow run dags/flaky.py": "succeeded",
    "evenflow dags list": "weather",
    "evenflow runs watch weather": "succeeded",
    "evenflow tasks logs weather report": "Kathmandu  18.0 °C",
}


def test_first_pipeline(evenflow_up: RunningEvenflow) -> None:
    """Every file is written and every command typed, but for ``evenflow up``, which runs already."""
    for example in examples(PAGE, "python"):
        name = example.text.splitlines()[0].removeprefix("# ")
        (evenflow_up.home / name).write_text(example.text, encoding="utf-8")
    _wait_for_dags(evenflow_up, {"weather", "flaky"})
    commands = [command for command in commands_of(PAGE) if command != "evenflow up"]
    assert SAYS.keys() <= set(commands)
    for command in commands:
        done = evenflow_up.evenflow(*shlex.split(command)[1:])
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}{evenflow_up.log}"
        assert SAYS.get(command, "") in done.stdout + done.stderr, f"{command}\n{done.stdout}{done.stderr}"


def _wait_for_dags(running: RunningEvenflow, wanted: set[str]) -> None:
    def listed() -> set[str]:
        return {dag["dag_id"] for dag in evenflow_json(running.home, "dags", "list")["dags"]}

    wait_until(lambda: wanted <= listed(), lambda: f"{wanted - listed()}\n{running.log}")
