"""Assets: names of data that tasks make and that DAGs wait for, and conditions that combine them with ``&`` and ``|``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenflow.core.limits import MAX_ASSET_NAME
from evenflow.core.partitions import FORMATS, Partitions
from evenflow.errors import BadArgument, BadSetting


class AssetCondition:
    """What a schedule may wait for: an asset, an alias, or several of them."""

    def to_condition(self) -> Any:
        """Returns the condition in the form of :mod:`evenflow.core.assets`."""
        raise NotImplementedError

    def leaves(self) -> Iterator[Asset | AssetAlias]:
        raise NotImplementedError

    def __and__(self, other: AssetCondition) -> AssetAll:
        return AssetAll(self, other) if isinstance(other, AssetCondition) else NotImplemented

    def __or__(self, other: AssetCondition) -> AssetAny:
        return AssetAny(self, other) if isinstance(other, AssetCondition) else NotImplemented


class Asset(AssetCondition):
    """Data with a name: ``Asset("orders")``, ``Asset("orders", "s3://shop/orders")``, or only its URI, which is then its name.

    ``extra`` is a JSON object about the asset. Two assets are equal when their names are. ``partitions`` lists its parts:
    ``"hour"``, ``"day"`` or ``"month"``, where a run makes the part of its logical date; or ``{"country": ["de", "fr"]}``, where a
    run makes the part that its parameter ``country`` names.
    """

    def __init__(
        self,
        name: str | None = None,
        uri: str | None = None,
        *,
        group: str = "asset",
        extra: Mapping[str, Any] | None = None,
        partitions: str | Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name = _checked_name(name if name is not None else uri, "asset")
        self.uri = uri if uri is not None else self.name
        self.group, self.extra = group, dict(extra or {})
        self.partitions = None if partitions is None else _partitions_of(self.name, partitions)

    def to_condition(self) -> Any:
        return self.name

    def leaves(self) -> Iterator[Asset | AssetAlias]:
        yield self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asset) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Asset({self.name!r})" if self.uri == self.name else f"Asset({self.name!r}, {self.uri!r})"


class AssetAlias(AssetCondition):
    """A name for assets that are known only when a task runs; the task adds them with ``outlet_events[alias].add(Asset(...))``."""

    def __init__(self, name: str, *, group: str = "asset") -> None:
        self.name, self.group = _checked_name(name, "alias"), group

    def to_condition(self) -> Any:
        return {"alias": self.name}

    def leaves(self) -> Iterator[Asset | AssetAlias]:
        yield self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetAlias) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("alias", self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"


class _Joined(AssetCondition):
    word = ""

    def __init__(self, *objects: AssetCondition) -> None:
        if not objects or not all(isinstance(each, AssetCondition) for each in objects):
            raise BadArgument(f"{type(self).__name__} takes assets, aliases and conditions, at least one, not {objects!r:.200}.")
        self.objects = objects

    def to_condition(self) -> Any:
        return {self.word: [each.to_condition() for each in self.objects]}

    def leaves(self) -> Iterator[Asset | AssetAlias]:
        for each in self.objects:
            yield from each.leaves()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.objects))})"


class AssetAll(_Joined):
    """Holds when each of them has an event."""

    word = "all"


class AssetAny(_Joined):
    """Holds when one of them has an event."""

    word = "any"


class AssetOrTimeSchedule:
    """Runs at the times of ``timetable`` (anything that ``schedule=`` takes for times), and also when ``assets`` hold."""

    def __init__(self, *, timetable: Any, assets: Any) -> None:
        condition = condition_of(assets)
        if condition is None:
            raise BadSetting(f"AssetOrTimeSchedule: assets must be assets, not {assets!r:.200}.")
        self.timetable, self.assets = timetable, condition


def condition_of(schedule: Any) -> AssetCondition | None:
    """Returns the condition of a ``schedule=`` with assets: one asset, a condition, or a list that needs all. Else returns None."""
    if isinstance(schedule, AssetCondition):
        return schedule
    if isinstance(schedule, (list, tuple, set, frozenset)) and schedule and all(isinstance(x, AssetCondition) for x in schedule):
        return AssetAll(*schedule)
    return None


def checked_assets(value: Any) -> tuple[Asset | AssetAlias, ...] | None:
    """Returns ``outlets=`` or ``inlets=`` as a tuple without repetitions; None when it is not a list of assets."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return None
    found = tuple(dict.fromkeys(value))
    return found if all(isinstance(each, (Asset, AssetAlias)) for each in found) else None


def _partitions_of(name: str, said: Any) -> Partitions:
    if isinstance(said, str) and said in FORMATS:
        return Partitions(every=said)
    match list(said.items()) if isinstance(said, Mapping) else None:
        case [(str() as param, [*keys])] if param and keys and all(isinstance(key, str) and key for key in keys):
            if len(set(keys)) < len(keys):
                raise BadArgument(f"The asset {name!r} names a partition twice: {', '.join(map(str, keys)):.200}.")
            return Partitions(param=param, keys=tuple(keys))
        case _:
            raise BadArgument(
                f"The asset {name!r}: partitions must be 'hour', 'day', 'month', or a parameter of the run with its values, as in "
                f"{{'country': ['de', 'fr']}}, not {said!r:.200}."
            )


def _checked_name(name: Any, kind: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name.encode()) > MAX_ASSET_NAME or not name.isprintable():
        raise BadArgument(
            f"The name of an {kind} is a text of printable characters, at most {MAX_ASSET_NAME:,} bytes, not {name!r:.80}."
        )
    return name
