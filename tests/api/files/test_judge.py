"""What authors' data means is found out in a process of its own: nothing of it holds up an API server (R-SE2)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from evenflow.api import limits
from evenflow.api.judge import Judge
from evenflow.core.model import DagSpec, RunParamSpec, TaskSpec
from evenflow.errors import ParamError

# Each level asks the next one twice: 2**60 looks, from a schema of three kilobytes.
WITHOUT_END = {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}, "$ref": "#/$defs/d0"}
WITHOUT_END["$defs"]["d60"] = {"type": "string"}  # type: ignore[index]


@pytest.fixture
async def judge() -> AsyncIterator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


async def test_a_schema_that_takes_for_ever_is_an_error_and_the_loop_goes_on(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JUDGE_PARAMS", 1.0)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began = time.process_time()
    with pytest.raises(ParamError, match="cannot be checked: that takes more than 1 s"):
        await judge.params({"p": RunParamSpec(default="x", schema=WITHOUT_END)}, {})
    ticking.cancel()
    assert ticks > 5, "others were served meanwhile"
    assert time.process_time() - began < 0.9, "the work was done by another process"
    good = {"p": RunParamSpec(default="x", schema={"type": "string"})}
    assert await judge.params(good, {"p": "y"}) == {"p": "y"}, "and the next one is judged as ever"


async def test_specs_that_take_too_long_are_all_wrong(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = tuple(TaskSpec(task_id=f"t{n}", operator="python") for n in range(5_000))
    text = DagSpec(dag_id="x", tasks=tasks).to_json()
    monkeypatch.setattr(limits, "JUDGE_SPECS", 0.001)
    (slow,) = await judge.specs([text])
    assert slow.spec is None
    assert slow.error == "What this file defines cannot be checked: that takes more than 0.001 s. Make it simpler."
    monkeypatch.undo()
    (judged,) = await judge.specs([text])
    assert (judged.spec, judged.error) == (text, None)


async def test_what_takes_too_much_memory_is_an_error(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JUDGE_MEMORY", 256 * 2**20)
    (judged,) = await judge.specs(["[" + "{}," * 8_000_000 + "{}]"])
    assert judged.spec is None
    assert judged.error is not None
    assert "memory" in judged.error.lower()


async def test_one_bad_spec_is_told_from_the_good_ones_beside_it(judge: Judge) -> None:
    text = DagSpec(dag_id="x", tasks=()).to_json()
    good, bad = await judge.specs([text, '{"format":1,"dag_id":"y","tasks":[],"groups":[{"group_id":"g","parent":0}]}'])
    assert (good.spec, bad.spec) == (text, None)
    assert "does not come before it" in (bad.error or "")


async def test_parameters_without_schemas_ask_nobody(judge: Judge) -> None:
    assert await judge.params({"p": RunParamSpec(default=1)}, {"p": 2}) == {"p": 2}
    assert judge._template is None
    with pytest.raises(ParamError, match="has no parameter 'q'"):
        await judge.params({"p": RunParamSpec(default=1)}, {"q": 2})
