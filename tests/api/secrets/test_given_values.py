"""What one load of a DAG file is given of connections and variables: within bounds, and without showing secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.limits import MAX_NAME_CHARS, MOST_VALUES_OF_FILE
from evenflow.errors import ApiUnavailable
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.masker import Masker
from evenflow.membership.given_values import GivenValues
from evenflow.processor.parsing import ParseLimits, parse_file
from evenflow.wire.messages import AskValue, GivenValue

URI = "postgresql://etl:open-sesame@db/sales"
ASKS = """# evenflow dag
import gc

from evenflow import DAG
from evenflow.forking.frames import Link

link = next(each for each in gc.get_objects() if isinstance(each, Link))
answer, _ = link.ask({"tell": "asks", "kind": "connection", "name": "warehouse"})
with DAG("asking", description=answer["text"]%s):
    pass
"""


async def test_a_file_asks_for_so_many_names_and_for_each_as_often_as_it_likes(
    processor: ExecutionClient, rest: RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-AF1: the bound is 100."""
    assert MOST_VALUES_OF_FILE == 100
    monkeypatch.setattr("evenflow.membership.given_values.MOST_VALUES_OF_FILE", 3)
    await rest.set_connection("warehouse", uri=URI)
    await rest.set_variable("ruled", value="x", dags=["sales_*"])
    masker = Masker()
    given = GivenValues(processor, "sales.py", masker)
    assert (await given.answer({"kind": "connection", "name": "warehouse"}))["text"] == URI
    assert masker.mask_text(URI) == "postgresql://etl:***@db/sales"
    assert (await given.answer({"kind": "variable", "name": "ruled"}))["status"] == 403
    assert (await given.answer({"kind": "variable", "name": "none"}))["text"] is None
    for _ in range(2):
        refusal = await given.answer({"kind": "variable", "name": "a_fourth"})
        assert refusal["status"] == 422
        assert refusal["error"].startswith("A file can ask for 3 connections and variables while it is loaded")
        assert "variable 'a_fourth'. Ask for it in a task." in refusal["error"]
    assert (await given.answer({"kind": "connection", "name": "warehouse"}))["text"] == URI
    told = {each.name: (each.refused, each.changed_at is not None) for each in given.asked()}
    assert told == {"warehouse": (False, True), "ruled": (True, False), "none": (False, False)}
    assert dict(given.texts()) == {("connection", "warehouse"): URI, ("variable", "ruled"): None, ("variable", "none"): None}


@pytest.mark.parametrize("question", [{"kind": "variable", "name": "x" * (MAX_NAME_CHARS + 1)}, {"kind": "pool", "name": "p"}, {}])
async def test_a_question_that_is_none_is_refused_here(processor: ExecutionClient, question: dict[str, str]) -> None:
    """The process runs code of authors, which may send anything."""
    given = GivenValues(processor, "sales.py", Masker())
    assert (await given.answer(question))["status"] == 422
    assert given.asked() == []


@pytest.mark.parametrize(("more", "warned"), [("", True), (" and None", False)])
async def test_a_secret_that_a_file_writes_into_a_definition_is_warned_of(
    processor: ExecutionClient, rest: RestClient, template: OwnedTemplate, tmp_path: Path, more: str, warned: bool
) -> None:
    """R-AF1, R-SE5: by the place and what to write, and the warning does not say the secret."""
    await rest.set_connection("warehouse", uri=URI)
    (tmp_path / "asking.py").write_text(ASKS % more)
    parsed = await parse_file(template, str(tmp_path), "asking.py", ParseLimits(), values=processor)
    assert parsed.error is None
    assert [each.name for each in parsed.asked] == ["warehouse"]
    told = [warning for warning in parsed.warnings if warning.startswith("asking.py:1: What this file defines has a secret in it")]
    assert len(told) == int(warned), parsed.warnings
    assert all("{{ conn.NAME.password }}" in warning for warning in told)
    assert "open-sesame" not in "".join(parsed.warnings)


async def test_a_file_that_asks_while_the_api_is_away_has_no_result_and_is_loaded_again(
    processor: ExecutionClient, rest: RestClient, template: OwnedTemplate, tmp_path: Path
) -> None:
    """R-HA4: an error of it would be of a file that has none, and what is stored would be lost."""
    await rest.set_connection("warehouse", uri=URI)
    away = [ApiUnavailable("the API is away")]

    class Values:
        async def value(self, message: AskValue) -> GivenValue:
            if away:
                raise away.pop()
            return await processor.value(message)

    (tmp_path / "asking.py").write_text(ASKS % " and None")
    with pytest.raises(ApiUnavailable, match="the API is away"):
        await parse_file(template, str(tmp_path), "asking.py", ParseLimits(), values=Values())
    parsed = await parse_file(template, str(tmp_path), "asking.py", ParseLimits(), values=Values())
    assert (parsed.error, len(parsed.specs)) == (None, 1)
