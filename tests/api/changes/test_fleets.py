"""Fleets, as people say what they are to be."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    async with RestClient(api_url, operator_token) as client:
        yield client


async def test_what_is_not_said_of_a_fleet_stays(rest: RestClient) -> None:
    """R-AS2: its queues, its policy and what its target has to know; `default` has an option as at first again."""
    own = {"deployment": "etl", "namespace": "data"}
    policy = {"max": 20, "down_after": "300", "protect": ["tag:billing"]}
    made = await rest.set_fleet("etl", target="kubernetes", queues=["etl"], policy=policy, options=own)
    assert (made.target, made.policy, made.options) == (
        "kubernetes",
        {"max": 20, "down_after": 300.0, "protect": ["tag:billing"]},
        own,
    )
    changed = await rest.set_fleet("etl", policy={"min": 2})
    assert (changed.target, changed.queues, changed.options) == ("kubernetes", ["etl"], own)
    assert changed.policy == {"min": 2, "max": 20, "down_after": 300.0, "protect": ["tag:billing"]}
    again = await rest.set_fleet("etl", queues=["etl", "reports"], policy={"down_after": "default", "protect": "default"})
    assert (again.queues, again.policy) == (["etl", "reports"], {"min": 2, "max": 20})


async def test_a_deployment_is_of_one_fleet(rest: RestClient) -> None:
    """R-AS2: each of two would set its own number, and take that of the other for one that a person has set."""
    etl = {"deployment": "workers", "namespace": "data"}
    await rest.set_fleet("etl", target="kubernetes", queues=["etl"], options=etl)
    with pytest.raises(ApiRefused, match="Deployment workers is that of fleet 'etl' already"):
        await rest.set_fleet("ml", target="kubernetes", queues=["ml"], options=etl)
    await rest.set_fleet("ml", target="kubernetes", queues=["ml"], options={**etl, "namespace": "ml"})
    await rest.set_fleet("etl", policy={"max": 3})
    with pytest.raises(ApiRefused, match="is that of fleet 'etl' already") as refused:  # without a namespace it may be this one
        await rest.set_fleet("ops", target="kubernetes", queues=["ops"], options={"deployment": "workers"})
    assert "name it for both: --option.namespace" in str(refused.value)
    await rest.set_fleet("ops", target="kubernetes", queues=["ops"], options={"deployment": "others"})
    with pytest.raises(ApiRefused, match="is that of fleet 'ops' already"):
        await rest.set_fleet("lab", target="kubernetes", queues=["lab"], options={"deployment": "others", "namespace": "lab"})


async def test_what_makes_no_fleet_is_refused_with_what_to_type(rest: RestClient) -> None:
    """R-AS2: also where what is new does not go with what stays."""
    with pytest.raises(ApiRefused, match="name each queue that its workers serve: --queue"):
        await rest.set_fleet("etl", policy={"max": 3})
    assert (await rest.set_fleet("etl", queues=["etl"], policy={"max": 3})).target == "native"
    with pytest.raises(ApiRefused, match="4 workers at least and 3 at most"):
        await rest.set_fleet("etl", policy={"min": 4})
    with pytest.raises(ApiRefused, match="evenflow autoscaler delete etl"):
        await rest.set_fleet("etl", target="celery")
