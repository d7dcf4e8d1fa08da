"""Which partitions an asset should have, and which exist: for lists of them, and for backfills over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from evenflow.api.refusals import Refused
from evenflow.contracts.rest.assets import AssetPartition
from evenflow.core.limits import MAX_PARTITIONS_SHOWN
from evenflow.core.partitions import Partitions
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import assets


class Partitioned(NamedTuple):
    asset: str
    partitions: Partitions
    stored: assets.StoredPartitions


def no_asset(asset: str) -> Refused:
    return Refused(404, "not_found", f"There is no asset {asset!r}.", hint="To see all, type: evenflow assets list")


async def partitioned(conn: AsyncConn, asset: str, *, scope: str | None = None) -> Partitioned:
    """Raises :class:`Refused` for an asset that does not exist in the scope, or has no partitions."""
    found = await assets.read_partitions(conn, asset, scope=scope)
    if found is None:
        raise no_asset(asset)
    if found.partitions is None:
        raise Refused(
            422,
            "bad_value",
            f"The asset {asset!r} has no partitions.",
            hint=f"Write Asset({asset!r}, partitions='day') where a task makes it.",
        )
    return Partitioned(asset, Partitions.read(found.partitions), found)


def behind(found: Sequence[AssetPartition], after: str | None) -> Sequence[AssetPartition]:
    """Of a list, what stands behind the place of a cursor. Raises :class:`Refused` when that partition has gone."""
    if after is None:
        return found
    (name,) = msgspec.json.decode(after)
    for number, each in enumerate(found, 1):
        if each.partition == name:
            return found[number:]
    gone = f"The partition {name!r}, behind which the page begins, has gone."
    raise Refused(422, "bad_cursor", gone, hint="Begin with the first page.")


async def list_partitions(
    conn: AsyncConn, of: Partitioned, first: datetime | None, last: datetime | None, *, scope: str | None = None
) -> list[AssetPartition]:
    """Returns all expected partitions in order: the keys, or those of the times from ``first`` to ``last``.

    The default range goes from the first existing partition to the newest whose time is over, and to that come those later ones
    that exist.
    """
    names = list(islice(_expected(of, first, last), MAX_PARTITIONS_SHOWN + 1))
    if len(names) > MAX_PARTITIONS_SHOWN:
        raise Refused(
            422, "too_large", f"There are more than {MAX_PARTITIONS_SHOWN:,} partitions in this range.", hint="Take a part of it."
        )
    found = {row["partition"]: row for row in await assets.list_partitions(conn, of.asset, names, scope=scope)}
    missing = {"at": None, "actor": None, "dag_id": None, "run_id": None, "event_id": None}
    return [AssetPartition(is_done=name in found, **{"partition": name, **found.get(name, missing)}) for name in names]


def _expected(of: Partitioned, first: datetime | None, last: datetime | None) -> Iterator[str]:
    if of.partitions.keys:
        if first is not None or last is not None:
            raise Refused(422, "bad_value", f"The partitions of {of.asset!r} are keys, not times.", hint="Leave the dates out.")
        return iter(of.partitions.keys)
    oldest = of.stored.first
    if first is None and (oldest is None or of.partitions.flaw_of(oldest)):  # a person has named a partition not by a date
        return iter(())
    begin = first or of.partitions.start_of(str(oldest))
    if last is not None:
        return of.partitions.between(begin, last)
    over = of.partitions.last_over(datetime.now(UTC))
    newest, earliest = of.partitions.of(over), of.partitions.of(begin)
    later = [name for name in of.stored.later if name > newest and name >= earliest and not of.partitions.flaw_of(name)]
    return chain(of.partitions.between(begin, over), later)
