"""What is expected of data, looked at in one pass: rows, nulls, uniqueness, ranges, freshness and schema.

What does not hold fails the task, is only told, or has its rows put aside. What was seen is kept as an XCom of the task, whatever
comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evenflow.errors import BadArgument, ExpectationFailed
from evenflow.sdk.context import get_current_context
from evenflow.spark.queries import quoted
from evenflow.spark.writing import overwrite

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

Otherwise = Literal["fail", "warn", "quarantine"]
VIOLATED = "violated"  # the column of rows put aside that says which expectations they violate


class ExpectationResult(NamedTuple):
    """Of an expectation. ``what`` is for people."""

    holds: bool
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """``measure`` is an aggregate over all rows, which ``judge`` is given with the number of rows; ``bad`` says of a row that it
    does not fulfil it.
    """

    name: str
    otherwise: Otherwise
    judge: Callable[[Any, int], ExpectationResult]
    measure: Callable[[], Column] | None = None
    bad: Callable[[], Column] | None = None
    drift: Callable[[DataFrame], ExpectationResult] | None = None  # of facts that are known without a look at rows

    def __post_init__(self) -> None:
        wanted = ("fail", "warn", "quarantine") if self.bad is not None else ("fail", "warn")
        if self.otherwise not in wanted:
            raise BadArgument(f"{self.name!r}: otherwise= is one of {', '.join(wanted)}, not {self.otherwise!r:.80}.")


@dataclass(frozen=True, slots=True)
class Findings:
    """What :func:`check` saw of ``rows`` rows."""

    rows: int = 0
    seen: list[tuple[Expectation, ExpectationResult]] = field(default_factory=list)
    quarantined: int = 0

    def violated(self, otherwise: Otherwise) -> list[tuple[Expectation, ExpectationResult]]:
        return [(each, seen) for each, seen in self.seen if not seen.holds and each.otherwise == otherwise]

    def told(self) -> dict[str, Any]:
        """In JSON's own types."""
        expectations = [
            {"expectation": each.name, "holds": seen.holds, "seen": seen.what, "otherwise": each.otherwise}
            for each, seen in self.seen
        ]
        return {"rows": self.rows, "quarantined": self.quarantined, "expectations": expectations}


def rows(*, at_least: int = 1, at_most: int | None = None, otherwise: Otherwise = "fail") -> Expectation:
    """How many rows there are."""

    def judge(measured: Any, count: int) -> ExpectationResult:
        return ExpectationResult(count >= at_least and (at_most is None or count <= at_most), f"{count:,} rows")

    return Expectation(name=f"rows {_range(at_least, at_most)}", otherwise=otherwise, judge=judge)


def not_null(column: str, *, otherwise: Otherwise = "fail") -> Expectation:
    from pyspark.sql import functions as F

    return _of_rows(f"{column} is not null", lambda: F.col(quoted(column)).isNull(), otherwise)


def between(column: str, least: Any = None, most: Any = None, *, otherwise: Otherwise = "fail") -> Expectation:
    """Both bounds belong to the range; a null is in every range. NaN is above every number."""
    from pyspark.sql import functions as F

    if least is None and most is None:
        raise BadArgument(f"between({column!r}): say the least value, the most, or both.")

    def bad() -> Column:
        value, never = F.col(quoted(column)), F.lit(False)
        below = never if least is None else value < F.lit(least)
        return below | (never if most is None else value > F.lit(most))

    return _of_rows(f"{column} {_range(least, most)}", bad, otherwise)


def holds(condition: str, *, otherwise: Otherwise = "fail") -> Expectation:
    """A condition of SQL on each row. One that is null holds, as a check of a database does."""
    from pyspark.sql import functions as F

    return _of_rows(condition, lambda: ~F.expr(condition), otherwise)


def unique(*columns: str, otherwise: Otherwise = "fail") -> Expectation:
    """No two rows have the same values there; rows with a null among them count as different."""
    from pyspark.sql import functions as F

    if not columns:
        raise BadArgument("unique() needs a column.")

    def measure() -> Column:
        keys = [F.col(quoted(column)) for column in columns]
        whole = F.when(~F.greatest(*(key.isNull() for key in keys), F.lit(False)), F.struct(*keys))
        return F.count(whole) - F.count_distinct(whole)

    def judge(measured: Any, count: int) -> ExpectationResult:
        return ExpectationResult(measured == 0, f"{measured:,} rows too many")

    return Expectation(name=f"{', '.join(columns)} unique", otherwise=otherwise, judge=judge, measure=measure)


def fresh(column: str, within: timedelta, *, now: datetime | None = None, otherwise: Otherwise = "fail") -> Expectation:
    """The newest of a column of times is not older; ``now`` has a time zone."""
    from pyspark.sql import functions as F

    def judge(measured: Any, count: int) -> ExpectationResult:
        if measured is None:
            return ExpectationResult(False, "no time")
        age = (now or datetime.now(UTC)) - datetime.fromtimestamp(measured, UTC)
        return ExpectationResult(age <= within, f"{timedelta(seconds=round(age.total_seconds()))} old")

    name = f"{column} not older than {within}"
    measure = lambda: F.max(F.unix_seconds(F.col(quoted(column)).cast("timestamp")))  # noqa: E731
    return Expectation(name=name, otherwise=otherwise, judge=judge, measure=measure)


def has_schema(schema: str | StructType, *, more: bool = False, otherwise: Otherwise = "fail") -> Expectation:
    """The columns, as ``"id bigint, day date"``, in any order; ``more`` allows others beside them."""

    def drift(frame: DataFrame) -> ExpectationResult:
        from pyspark.sql.types import StructType

        wanted = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
        assert isinstance(wanted, StructType)
        return drift_of({f.name: f.dataType.simpleString() for f in wanted.fields}, dict(frame.dtypes), more=more)

    return Expectation(name="schema", otherwise=otherwise, judge=lambda measured, count: ExpectationResult(True, ""), drift=drift)


def drift_of(wanted: Mapping[str, str], found: Mapping[str, str], *, more: bool) -> ExpectationResult:
    """Of columns, name to type."""
    missing = [f"{name} is missing" for name in wanted if name not in found]
    changed = [f"{name} is {found[name]} and not {kind}" for name, kind in wanted.items() if name in found and found[name] != kind]
    added = [] if more else [f"{name} is new" for name in found if name not in wanted]
    return ExpectationResult(not (missing or changed or added), "; ".join([*missing, *changed, *added]) or "as expected")


def check(frame: DataFrame, *expectations: Expectation, name: str = "data", quarantine: str | None = None) -> DataFrame:
    """Returns the rows that may continue: all of them, or without those that were put aside to ``quarantine``, a path.

    Raises :class:`ExpectationFailed`. The figures are kept under the key ``quality NAME``.
    """
    wants_place = any(each.otherwise == "quarantine" for each in expectations)
    if wants_place and quarantine is None:
        raise BadArgument(f"check({name!r}): say where rows are put aside: quarantine='s3a://...'.")
    if wants_place and VIOLATED in map(str.lower, frame.columns):
        raise BadArgument(f"check({name!r}): rows that are put aside get a column {VIOLATED!r}. Rename that of the data.")
    drifts = [(each, each.drift(frame)) for each in expectations if each.drift is not None]
    try:
        fail_on(name, findings := Findings(seen=drifts))  # other expectations may be of columns that are not there
    except ExpectationFailed:
        _keep(name, findings)
        raise
    findings = measured(frame, expectations, drifts)
    if not wants_place or findings.violated("fail"):
        _keep(name, findings)
        fail_on(name, findings)
        return frame
    assert quarantine is not None
    good, bad = _divided(frame, [each for each in expectations if each.otherwise == "quarantine"])
    aside = bad if findings.violated("quarantine") else bad.limit(0)  # what an earlier try has put there goes
    _keep(name, Findings(findings.rows, findings.seen, overwrite(aside, path=quarantine)))
    return good


def measured(
    frame: DataFrame, expectations: Sequence[Expectation], drifts: Sequence[tuple[Expectation, ExpectationResult]]
) -> Findings:
    """In one pass over ``frame``."""
    from pyspark.sql import functions as F

    asked = [each for each in expectations if each.drift is None]
    columns = [each.measure().alias(f"m{place}") for place, each in enumerate(asked) if each.measure is not None]
    row = frame.agg(F.count(F.lit(1)).alias("rows"), *columns).collect()[0].asDict()
    seen = [(each, each.judge(row.get(f"m{place}"), row["rows"])) for place, each in enumerate(asked)]
    return Findings(row["rows"], [*drifts, *seen])


def fail_on(name: str, findings: Findings) -> None:
    """Raises :class:`ExpectationFailed` with all that was violated."""
    if found := findings.violated("fail"):
        said = "; ".join(f"{each.name} ({seen.what})" for each, seen in found)
        raise ExpectationFailed(f"{name} is not as expected: {said}. All that was seen is in the task's XCom 'quality {name}'.")


def _keep(name: str, findings: Findings) -> None:
    for each, seen in findings.seen:
        print(f"{name}: {'holds' if seen.holds else each.otherwise:10} {each.name} ({seen.what})", flush=True)
    get_current_context()["ti"].xcom_push(f"quality {name}", findings.told())


def _divided(frame: DataFrame, expectations: Sequence[Expectation]) -> tuple[DataFrame, DataFrame]:
    """Returns the rows that fulfil them, and the others with what they violate."""
    from pyspark.sql import functions as F

    marks = [F.when(_is_bad(each), F.lit(each.name)) for each in expectations]
    marked = frame.withColumn(VIOLATED, F.array_compact(F.array(*marks)))
    is_bad = F.size(VIOLATED) > 0
    return marked.where(~is_bad).drop(VIOLATED), marked.where(is_bad)


def _is_bad(expectation: Expectation) -> Column:
    from pyspark.sql import functions as F

    assert expectation.bad is not None
    return F.coalesce(expectation.bad(), F.lit(False))


def _of_rows(name: str, bad: Callable[[], Column], otherwise: Otherwise) -> Expectation:
    from pyspark.sql import functions as F

    def judge(measured: Any, count: int) -> ExpectationResult:
        return ExpectationResult(measured == 0, f"{measured:,} of {count:,} rows do not")

    measure = lambda: F.count_if(F.coalesce(bad(), F.lit(False)))  # noqa: E731
    return Expectation(name=name, otherwise=otherwise, judge=judge, measure=measure, bad=bad)


def _range(least: Any, most: Any) -> str:
    if most is None:
        return f"at least {least}"
    return f"at most {most}" if least is None else f"between {least} and {most}"
