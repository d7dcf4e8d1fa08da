"""XCom values: every type comes back as it was, through PostgreSQL's jsonb too."""

from __future__ import annotations

import json
import math
import sys
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import XComError, XComTooLarge
from evenflow.sdk import xcom


class Colour(Enum):
    RED = 1


class Size(StrEnum):
    LARGE = "large"


class Level(IntEnum):
    HIGH = 3


@dataclass(frozen=True, slots=True)
class Line:
    article: str
    price: Decimal


@dataclass
class Order:
    lines: list[Line]
    at: datetime
    colour: Colour = Colour.RED
    note: str = field(default="", init=False)


Pair = namedtuple("Pair", "a b")


def through_json(value: Any) -> Any:
    return xcom.decode(json.loads(xcom.dump(value, "It")), "It")


def same(one: Any, other: Any) -> bool:
    """Equal, of equal types, and NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(key in other and same(item, other[key]) for key, item in one.items())
    return bool(one == other) or (one != one and repr(one) == repr(other))


SAMPLES = [
    None,
    True,
    0,
    2**63 - 1,
    -(2**63),
    2**63,
    -(10**5000),
    1.0,
    -0.0,
    1e16,
    1.5e300,
    5e-324,
    math.inf,
    -math.inf,
    "text",
    "",
    "nul \0",
    "lone \ud800",
    "grüße 🎉",
    [],
    [1, [2, {"a": None}]],
    {},
    {"a": 1, "__type__": "mine"},
    {1: "int", None: "none", (1, 2): "tuple", "\0": "nul"},
    (),
    (1, (2,)),
    {1, 2, 3},
    frozenset({"a"}),
    {(1, "a"), None},
    b"\x00\xff",
    datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime(2026, 1, 2, tzinfo=UTC),
    datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    datetime(2025, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    date(2026, 1, 2),
    time(3, 4, 5),
    timedelta(days=-1, microseconds=7),
    Decimal("1.10"),
    Decimal("NaN"),
    UUID(int=5),
    Path("/a/b c"),
    Colour.RED,
    Size.LARGE,
    Level.HIGH,
    Line("a", Decimal("1.5")),
    Order([Line("a", Decimal(2))], datetime(2026, 1, 2, tzinfo=UTC)),
]


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_every_type_comes_back(value: Any) -> None:
    assert same(through_json([value]), [value])


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.datetimes()
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.sampled_from(Colour),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.just("__type__"), inner) | st.tuples(inner, inner)
    ),
    max_leaves=15,
)


@given(VALUES)
def test_any_value_comes_back(value: Any) -> None:
    assert same(through_json(value), value)


@pytest.fixture(scope="module")
def connection(postgres: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.url(), autocommit=True) as conn:
        yield conn


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(VALUES)
def test_any_value_comes_back_from_jsonb(connection: psycopg.Connection[Any], value: Any) -> None:
    row = connection.execute("select %s::jsonb::text", [xcom.dump(value, "It").decode()]).fetchone()
    assert row is not None
    assert same(xcom.decode(json.loads(row[0]), "It"), value)


def test_every_type_comes_back_from_jsonb(connection: psycopg.Connection[Any]) -> None:
    for value in SAMPLES:
        row = connection.execute("select %s::jsonb::text", [xcom.dump(value, "It").decode()]).fetchone()
        assert row is not None
        assert same(xcom.decode(json.loads(row[0]), "It"), value)


def test_json_is_stored_as_it_is() -> None:
    value = {"a": [1, 2.5, "x", None, True, {"b": []}], "ü": "ß"}
    assert json.loads(xcom.dump(value, "It")) == value


def test_equal_sets_are_equal_text() -> None:
    assert xcom.dump({"b", "a", "c"}, "It") == xcom.dump({"c", "a", "b"}, "It")


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        (OrderedDict(a=1), {"a": 1}),
        (Pair(1, 2), (1, 2)),
        (PurePosixPath("a/b"), Path("a/b")),
        (bytearray(b"x"), None),
    ],
)
def test_subclasses_come_back_as_their_base(value: Any, base: Any) -> None:
    if base is None:
        with pytest.raises(XComError, match=r"builtins\.bytearray, which cannot be stored"):
            through_json(value)
    else:
        assert through_json(value) == base


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert through_json([numpy.int64(5), numpy.float64(0.5), numpy.bool_(True)]) == [5, 0.5, True]


def test_what_cannot_be_stored_is_named_with_its_place_and_a_cure() -> None:
    with pytest.raises(XComError) as raised:
        xcom.dump({"rows": [1, object()]}, "The result of task 't'")
    assert str(raised.value) == (
        "The result of task 't', item 'rows', item 1 has a value of type builtins.object, which cannot be stored. Return JSON "
        "types, dates, paths or a dataclass; write anything else (a DataFrame, a model) to storage and return its path or URL."
    )


def test_generators_are_not_stored() -> None:
    with pytest.raises(XComError, match=r"builtins\.generator"):
        xcom.dump((n for n in [1]), "It")


def test_there_is_a_largest_value() -> None:
    assert len(xcom.dump("x" * (MAX_XCOM_BYTES - 2), "It")) == MAX_XCOM_BYTES == 33_554_432
    with pytest.raises(XComTooLarge, match=r"It is 33,554,433 bytes as JSON, above the limit of 33,554,432. Write it to storage"):
        xcom.dump("x" * (MAX_XCOM_BYTES - 1), "It")


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(XComError, match="nested too deep"):
        xcom.dump(value, "It")


def test_a_local_class_is_refused() -> None:
    @dataclass
    class Local:
        a: int

    with pytest.raises(XComError, match="Define the class at the top of the file"):
        xcom.dump(Local(1), "It")


@pytest.mark.parametrize(
    "name",
    [
        "antigravity:Anything",
        "subprocess:Popen",
        "os:system",
        "builtins:eval",
        f"{__name__}:Missing",
        f"{__name__}:Line.__init__",
        ":",
    ],
)
def test_decoding_makes_nothing_but_dataclasses_and_imports_nothing(name: str) -> None:
    for kind in ("dataclass", "enum"):
        with pytest.raises(XComError, match="Import it at the top of the DAG file"):
            xcom.decode({"__type__": kind, "class": name, "value": {"args": "x"}}, "It")
    assert "antigravity" not in sys.modules


def test_a_dataclass_whose_fields_changed_says_so() -> None:
    with pytest.raises(XComError, match=r"it was stored with the fields \['article'\] and now has \['article', 'price'\]"):
        xcom.decode({"__type__": "dataclass", "class": f"{__name__}:Line", "value": {"article": "a"}}, "It")


def test_a_type_from_the_future_says_so() -> None:
    with pytest.raises(XComError, match="the type 'tensor', which this Evenflow does not know"):
        xcom.decode({"__type__": "tensor", "value": 1}, "It")


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ([1, 2], 2),
        ((1, 2, 3), 3),
        ({"a": 1}, 1),
        ({1: 2, 3: 4, 5: 6}, 3),
        ({}, 0),
        ("text", None),
        ({1}, None),
        (date(2026, 1, 1), None),
        (None, None),
    ],
)
def test_the_length_that_a_mapping_sees(value: Any, length: int | None) -> None:
    assert xcom.mapped_length(xcom.encode(value, "It")) == length
