"""What is refused is a problem of RFC 9457, of a kind that stays, with its cure apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import aiohttp
import pytest

from evenflow.api import refusals
from evenflow.api.rest.app import described_rest
from evenflow.client.rest import RestClient
from evenflow.contracts.rest.problems import TITLES, Problem
from evenflow.errors import ApiRefused, EvenflowError
from tests.api.world import World
from tests.house.project import SOURCE, nodes


async def get(url: str, token: str, **headers: str) -> Problem:
    shown = {"Authorization": f"Bearer {token}", **headers}
    async with aiohttp.ClientSession(headers=shown) as session, session.get(url) as answer:
        assert answer.headers["Content-Type"] == "application/problem+json"
        return Problem.model_validate(await answer.json())


async def test_a_problem_says_what_happened_and_apart_from_it_what_to_do(api_url: str, operator_token: str, world: World) -> None:
    world.add_dag()
    problem = await get(f"{api_url}/api/v1/dags/sale", operator_token, **{"X-Request-ID": "mine-7"})
    assert problem == Problem(
        type="/api/v1/problems/not_found",
        title="There is no such thing",
        status=404,
        detail="There is no DAG 'sale'.",
        instance="/api/v1/dags/sale",
        hint="Did you mean 'sales'? To see all, type: evenflow dags list",
        request_id="mine-7",
    )


async def test_the_type_of_a_problem_leads_to_what_it_means(api_url: str, operator_token: str) -> None:
    """Also who has no token may read it: they get problems, too."""
    problem = await get(f"{api_url}/api/v1/dags", "none")
    assert problem.status == 401
    async with aiohttp.ClientSession() as session, session.get(f"{api_url}{problem.type}") as answer:
        assert await answer.json() == {"type": "/api/v1/problems/unauthorized", "title": problem.title}
    assert (await get(f"{api_url}/api/v1/problems/nonsense", operator_token)).detail == "There is no problem 'nonsense'."


async def test_the_client_raises_the_problem_in_its_own_words(api_url: str, operator_token: str) -> None:
    """R-UX2: what the command line says is the sentence and its cure."""
    async with RestClient(api_url, operator_token) as client:
        with pytest.raises(ApiRefused) as refused:
            await client.get_dag("nope")
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    assert refused.value.hint == "To see all, type: evenflow dags list"
    assert str(refused.value) == "There is no DAG 'nope'. To see all, type: evenflow dags list"


def test_the_description_names_the_one_media_type_of_refusals() -> None:
    described = described_rest().openapi()
    answers = [
        answer
        for operations in described["paths"].values()
        for operation in operations.values()
        for status, answer in operation["responses"].items()
        if status >= "400" and "$ref" not in answer
    ]
    answers += described["components"]["responses"].values()
    kinds = {kind for answer in answers for kind in answer.get("content", {})}
    assert kinds == {"application/problem+json", "application/json"}, "the latter of probes: whoever is not well says why"
    schema = described["components"]["schemas"]["Problem"]
    assert set(schema["properties"]) == {"type", "title", "status", "detail", "instance", "hint", "request_id"}


def raised_codes() -> Iterator[str]:
    for path in (SOURCE / "api").rglob("*.py"):
        for node in nodes(path):
            match node:
                case ast.Call(func=ast.Name(id="Refused" | "HttpRefusal"), args=[_, ast.Constant(value=str(code)), *_]):
                    yield code
    yield from (code for _, _, code in refusals._KNOWN)


def test_every_kind_of_problem_has_a_title_and_every_title_a_kind() -> None:
    made_elsewhere = {"method_not_allowed", "bad_request", "cannot_store"}  # of what Starlette refuses, and of a class of its own
    assert set(raised_codes()) | made_elsewhere == set(TITLES)


def test_an_error_without_a_hint_is_its_detail() -> None:
    whole, plain = EvenflowError("A.", hint=" B. "), EvenflowError("A.")
    assert (whole.detail, whole.hint, str(whole)) == ("A.", "B.", "A. B.")
    assert (plain.detail, plain.hint, str(plain)) == ("A.", "", "A.")
    assert EvenflowError().args == ()
