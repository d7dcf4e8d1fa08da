"""Programs of two releases understand each other, or say why they do not."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from evenflow.api.execution import services as api_side
from evenflow.client import execution as service_side
from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiRefused
from evenflow.wire import messages as m
from evenflow.wire.versions import OLDEST_WIRE, OURS, WIRE, Spoken
from tests.api.world import World

WORKER = m.Register(kind="worker", name="w1", host="box", pid=7, version="0.9", detail={"slots": 4, "queues": ["default"]})


def test_two_ranges_agree_on_the_newest_that_both_speak() -> None:
    assert Spoken(2, 4).agreed(Spoken(3, 6)) == 4
    assert Spoken(2, 4).agreed(Spoken(1, 2)) == 2
    assert Spoken(2, 4).agreed(Spoken(5, 6)) is None
    assert Spoken(2, 4).agreed(Spoken(1, 1)) is None


@pytest.mark.parametrize("theirs", [Spoken(OLDEST_WIRE, WIRE), Spoken(OLDEST_WIRE, WIRE + 3)])
async def test_a_service_that_speaks_more_is_welcome(
    client: ExecutionClient, monkeypatch: pytest.MonkeyPatch, theirs: Spoken
) -> None:
    monkeypatch.setattr(service_side, "OURS", theirs)
    assert (await client.register(WORKER)).wire == WIRE


@pytest.mark.parametrize(
    ("theirs", "cure"), [(Spoken(1, 1), "Upgrade Evenflow on box."), (Spoken(WIRE + 1, WIRE + 2), "Upgrade the API first.")]
)
async def test_a_service_that_speaks_otherwise_is_told_which_side_is_too_old(
    client: ExecutionClient, world: World, monkeypatch: pytest.MonkeyPatch, theirs: Spoken, cure: str
) -> None:
    monkeypatch.setattr(service_side, "OURS", theirs)
    with pytest.raises(ApiRefused) as refused:
        await client.register(WORKER)
    assert refused.value.status == 426
    said = f"The worker w1 (Evenflow 0.9) speaks version {theirs} of the messages, this API (Evenflow "
    assert str(refused.value).startswith(said)
    assert str(refused.value).endswith(f") speaks {OURS}. {cure}")
    assert world.one("select count(*) from service where kind = 'worker'") == 0


async def test_an_api_that_knows_of_no_versions_speaks_the_first(client: ExecutionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_side, "_agreed", lambda _: 1)
    with pytest.raises(ApiRefused, match=rf"speaks version 1 of the messages, this worker .* speaks {OURS}. Upgrade the API first"):
        await client.register(WORKER)


def _kinds(kind: type[m.Message]) -> Iterator[type[m.Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


@pytest.mark.parametrize("kind", sorted(set(_kinds(m.Message)), key=lambda kind: kind.__name__))
def test_a_field_that_is_not_known_is_ignored(kind: type[m.Message]) -> None:
    """Of every message: that is what lets fields be added without a new version."""
    known = {field.encode_name: _some(msgspec.inspect.type_info(kind), field.encode_name) for field in _required(kind)}
    text = msgspec.msgpack.encode({**known, "of_the_future": [1, {"a": 2}]})
    read = msgspec.msgpack.decode(text, type=kind)
    assert all(getattr(read, field.name) is not None for field in _required(kind))


def _required(kind: type[m.Message]) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(kind) if field.required]


def _some(info: msgspec.inspect.Type, name: str) -> object:
    assert isinstance(info, msgspec.inspect.StructType)
    (wanted,) = [field.type for field in info.fields if field.encode_name == name]
    match wanted:
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.StrType():
            return "x"
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return 1
        case msgspec.inspect.BytesType():
            return b"x"
        case msgspec.inspect.ListType():
            return []
        case msgspec.inspect.DictType() | msgspec.inspect.StructType():
            return {}  # a record within a message has a default for each of its fields
        case msgspec.inspect.UnionType(types=types):
            return 1 if any(isinstance(each, msgspec.inspect.IntType) for each in types) else "x"
        case _:
            raise AssertionError(f"{name}: say here what a {wanted} may be")
