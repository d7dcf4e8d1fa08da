"""What a running task says of the assets that it makes, and what it sees of those that it uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from evenflow.core.ending import AssetChange
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import MAX_ASSET_EVENTS, MAX_ASSET_EVENTS_BYTES, MAX_ASSET_EXTRA_BYTES
from evenflow.errors import BadArgument
from evenflow.sdk.assets import Asset, AssetAlias


class Control(Protocol):
    """The connection of a running try to the control plane; see ``sdk.runner.Channel.ask``."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetEvent:
    """A change of an asset, by a task, or by hand when ``source_task_id`` is None."""

    asset: Asset
    timestamp: datetime
    extra: dict[str, Any] = field(default_factory=dict)
    partition: str | None = None  # of a partitioned asset: the changed partition
    source_dag_id: str | None = None
    source_run_id: str | None = None
    source_task_id: str | None = None
    source_map_index: int | None = None


class OutletEvent:
    """The event of one outlet. Fill ``extra``, or :meth:`add` assets to an alias.

    ``partitions`` lists the partitions that were made, with an event each; by default it is that of the run.
    """

    def __init__(self, outlet: Asset | AssetAlias) -> None:
        self.outlet = outlet
        self.extra: dict[str, Any] = {}
        self.partitions: Sequence[str] = ()
        self.added: list[tuple[Asset, dict[str, Any]]] = []

    def add(self, asset: Asset, extra: Mapping[str, Any] | None = None) -> None:
        """Adds an event of ``asset`` through the alias. Raises :class:`BadArgument` when the outlet is not an alias."""
        if not isinstance(self.outlet, AssetAlias) or not isinstance(asset, Asset):
            raise BadArgument(f"add() takes an Asset, for an outlet that is an AssetAlias; this is {self.outlet!r}, not {asset!r}.")
        self.added.append((asset, dict(extra or {})))

    def told(self) -> Iterator[dict[str, Any]]:
        if isinstance(self.outlet, AssetAlias):
            for asset, extra in self.added:
                yield {"asset": asset.name, "uri": asset.uri, "extra": {**self.extra, **extra}, "alias": self.outlet.name}
        elif self.extra or self.partitions:
            for partition in self._checked(self.outlet) or (None,):
                yield {
                    "asset": self.outlet.name,
                    "uri": self.outlet.uri,
                    "extra": self.extra,
                    "alias": None,
                    "partition": partition,
                }

    def _checked(self, asset: Asset) -> list[str]:
        """Returns the partitions that the task has named, without repetitions."""
        if isinstance(self.partitions, str) or not all(isinstance(each, str) for each in self.partitions):
            raise BadArgument(f"The partitions of {asset!r} must be a list of texts, not {self.partitions!r:.80}.")
        for each in self.partitions:
            flaw = (
                "is none: say partitions= where the asset is made" if asset.partitions is None else asset.partitions.flaw_of(each)
            )
            if flaw is not None:
                raise BadArgument(f"The partition {each!r:.80} of {asset!r} {flaw}.")
        return list(dict.fromkeys(self.partitions))


class _ByName:
    """Assets and aliases of a task, found by their names or by themselves."""

    _kind = ""

    def _named_ones(self) -> Iterable[Asset | AssetAlias]:
        raise NotImplementedError

    def _named(self, kind: type[Asset] | type[AssetAlias], **said: str | None) -> Any:
        wanted = {name: value for name, value in said.items() if value is not None}
        for each in self._named_ones():
            if wanted and isinstance(each, kind) and all(getattr(each, name) == value for name, value in wanted.items()):
                return each
        shown = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
        raise BadArgument(
            f"{kind.__name__}({shown}) is no {self._kind} of this task. Add it: {self._kind}s=[{kind.__name__}({shown})]"
        )


class OutletEvents(_ByName, Mapping[Any, OutletEvent]):
    """``outlet_events`` in the context, by outlet."""

    _kind = "outlet"

    def __init__(self, outlets: Iterable[Asset | AssetAlias]) -> None:
        self._events = {outlet: OutletEvent(outlet) for outlet in outlets}

    def _named_ones(self) -> Iterable[Asset | AssetAlias]:
        return self._events

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> OutletEvent:
        return self[self._named(Asset, name=name, uri=uri)]

    def for_asset_alias(self, *, name: str) -> OutletEvent:
        return self[self._named(AssetAlias, name=name)]

    def __getitem__(self, outlet: Any) -> OutletEvent:
        try:
            return self._events[outlet]
        except KeyError:
            raise BadArgument(f"{outlet!r} is no outlet of this task. Add it: outlets=[{outlet!r}]") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def told(self) -> list[AssetChange]:
        """Returns the events for the exit report. Raises :class:`BadArgument` for what is not JSON, or too much."""
        told = [each for event in self._events.values() for each in event.told()]
        if len(told) > MAX_ASSET_EVENTS:
            raise BadArgument(f"The task made {len(told):,} asset events; the limit is {MAX_ASSET_EVENTS:,} a try.")
        for each in told:
            if (flaw := flaw_of(each["extra"])) is not None:
                raise BadArgument(f"The extra of the event of asset {each['asset']!r} {flaw}.")
            try:
                text = json.dumps(each["extra"], allow_nan=False, ensure_ascii=False)
                size = len(text.encode())
                json.loads(text, parse_int=_int64)
            except (TypeError, ValueError) as error:
                raise BadArgument(f"The extra of the event of asset {each['asset']!r} cannot be stored as JSON: {error}.") from None
            if size > MAX_ASSET_EXTRA_BYTES:
                raise BadArgument(
                    f"The extra of the event of asset {each['asset']!r} is {size:,} bytes as JSON, above the limit of "
                    f"{MAX_ASSET_EXTRA_BYTES:,}. Write it to storage and put its path there."
                )
        if (size := len(json.dumps(told, ensure_ascii=False).encode(errors="replace"))) > MAX_ASSET_EVENTS_BYTES:
            raise BadArgument(
                f"The {len(told):,} asset events of this try are {size:,} bytes as JSON, above the limit of "
                f"{MAX_ASSET_EVENTS_BYTES:,} for all of them. Write their extras to storage and put their paths there."
            )
        return [AssetChange(**each) for each in told]


def _int64(digits: str) -> int:
    """Raises :class:`ValueError` for numbers that messages and databases cannot hold."""
    if not -(2**63) <= (number := int(digits)) < 2**63:
        raise ValueError(f"{digits} has more than 64 bits; make it a string")
    return number


class TriggeringAssetEvents(Mapping[Asset, list[AssetEvent]]):
    """``triggering_asset_events`` in the context: the events that made the run, by asset. The first access reads them."""

    def __init__(self, control: Control) -> None:
        self._control = control

    @cached_property
    def _events(self) -> dict[Asset, list[AssetEvent]]:
        found: dict[Asset, list[AssetEvent]] = {}
        for event in _events_of(self._control.ask("triggering_events", {})):
            found.setdefault(event.asset, []).append(event)
        return found

    def __getitem__(self, asset: Asset | str) -> list[AssetEvent]:
        return self._events[Asset(asset) if isinstance(asset, str) else asset]

    def partitions(self, asset: Asset | str) -> list[str]:
        """Returns the changed partitions of the asset, in order: the work of an incremental run."""
        name = asset if isinstance(asset, str) else asset.name
        return sorted({event.partition for event in self.get(Asset(name), ()) if event.partition is not None})

    def __iter__(self) -> Iterator[Asset]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)


class InletEvents(_ByName, Mapping[Any, list[AssetEvent]]):
    """``inlet_events`` in the context: the newest events of each inlet, oldest first. An access reads them."""

    _kind = "inlet"

    def __init__(self, inlets: Iterable[Asset | AssetAlias], control: Control) -> None:
        self._inlets, self._control = tuple(inlets), control
        self._known: dict[Any, list[AssetEvent]] = {}

    def _named_ones(self) -> Iterable[Asset | AssetAlias]:
        return self._inlets

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> list[AssetEvent]:
        return self[self._named(Asset, name=name, uri=uri)]

    def for_asset_alias(self, *, name: str) -> list[AssetEvent]:
        return self[self._named(AssetAlias, name=name)]

    def __getitem__(self, inlet: Any) -> list[AssetEvent]:
        if inlet not in self._inlets:
            raise BadArgument(f"{inlet!r} is no inlet of this task. Add it: inlets=[{inlet!r}]")
        if inlet not in self._known:
            question = {"name": inlet.name, "is_alias": isinstance(inlet, AssetAlias)}
            self._known[inlet] = _events_of(self._control.ask("inlet_events", question))
        return self._known[inlet]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inlets)

    def __len__(self) -> int:
        return len(self._inlets)


def _events_of(answer: Mapping[str, Any]) -> list[AssetEvent]:
    return [
        AssetEvent(
            asset=Asset(event["asset"], event["uri"]),
            timestamp=datetime.fromisoformat(event["at"]),
            extra=event["extra"],
            partition=event["partition"],
            source_dag_id=event["dag_id"],
            source_run_id=event["run_id"],
            source_task_id=event["task_id"],
            source_map_index=event["map_index"],
        )
        for event in answer["events"]
    ]
