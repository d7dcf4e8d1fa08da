"""Which columns the columns of a query come from, by its analysed plan as Spark writes it (``TreeNode.toJSON``).

Each attribute has a number. For each node of a plan this module finds its columns, in order, and from which columns of relations
each of them comes. A column comes from another *directly*: unchanged (identity), changed (transformation) or with those of other
rows (aggregation). Or *indirectly*: the other column decides which rows there are, or which value is taken. What decides that for
whole rows, such as a filter, is kept for the whole result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

DIRECT, INDIRECT = "DIRECT", "INDIRECT"
IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
_RANK = {IDENTITY: 0, TRANSFORMATION: 1, AGGREGATION: 2}

# Functions whose result does not reveal the value that went in.
_MASKING = frozenset({"Md5", "Sha1", "Sha2", "Crc32", "Murmur3Hash", "XxHash64", "HiveHash", "Count"})
_SUBQUERIES = frozenset({"ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"})
# Plans whose function sees whole rows: each of its columns may come from any of theirs.
_OPAQUE = frozenset(
    {
        "MapInPandas",
        "MapInArrow",
        "PythonMapInArrow",
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "FlatMapCoGroupsInArrow",
        "ScriptTransformation",
        "SerializeFromObject",
        "PythonUDTF",
    }
)


class Column(NamedTuple):
    """Of a relation, which its first attribute's number stands for."""

    relation: int
    name: str


class How(NamedTuple):
    kind: str  # DIRECT or INDIRECT
    subtype: str
    masking: bool = False


Origins = dict[Column, frozenset[How]]
K = TypeVar("K")


class Attribute(NamedTuple):
    number: int
    name: str


@dataclass(slots=True)
class PlanNode:
    """Of a plan or an expression. ``fields`` has other trees as nodes, and lists of them."""

    name: str
    fields: dict[str, Any]
    children: list[PlanNode] = field(default_factory=list)

    def trees(self, name: str) -> list[PlanNode]:
        """Those of a field, however deep in lists."""
        return list(_flat(self.fields.get(name)))


def _flat(value: Any) -> Iterator[PlanNode]:
    match value:
        case PlanNode():
            yield value
        case list():
            for item in value:
                yield from _flat(item)


def read_plan(written: list[dict[str, Any]]) -> PlanNode:
    """Nodes stand before their children, which follow in order."""
    return _read(iter(written))


def _read(rest: Iterator[dict[str, Any]]) -> PlanNode:
    told = next(rest)
    node = PlanNode(told["class"].rpartition(".")[2], {name: _value(value) for name, value in told.items()})
    node.children = [_read(rest) for _ in range(told["num-children"])]
    return node


def _value(value: Any) -> Any:
    match value:
        case [{"class": str(), "num-children": int()}, *_]:
            return read_plan(value)
        case list():
            return [_value(item) for item in value]
        case _:
            return value


@dataclass(slots=True)
class Lineage:
    """``columns`` are those of the result, in order, with their origins; ``rows`` are the columns that decide which rows
    there are.
    """

    columns: list[tuple[str, Origins]]
    rows: Origins


def lineage_of(plan: PlanNode) -> Lineage:
    """Of a query."""
    reading = _PlanReader()
    output = reading.visit(plan)
    return Lineage([(each.name, reading.origins.get(each.number, {})) for each in output], reading.rows)


@dataclass(slots=True)
class _PlanReader:
    """``origins`` has all attributes that were met; numbers are given once in a plan."""

    origins: dict[int, Origins] = field(default_factory=dict)
    rows: Origins = field(default_factory=dict)
    shared: dict[int, list[Attribute]] = field(default_factory=dict)  # common table expressions

    def visit(self, plan: PlanNode) -> list[Attribute]:
        """Returns the columns of ``plan``, whose origins are then known."""
        below = [self.visit(child) for child in plan.children]
        first = below[0] if below else []
        match plan.name:
            case "Project":
                return self._named(plan.trees("projectList"))
            case "Aggregate":
                self._judge(plan.trees("groupingExpressions"), "GROUP_BY")
                return self._named(plan.trees("aggregateExpressions"))
            case "Window":
                return first + self._named(plan.trees("windowExpressions"))
            case "Filter":
                self._judge(plan.trees("condition"), "FILTER")
                return first
            case "Sort":
                self._judge(plan.trees("order"), "SORT")
                return first
            case "Deduplicate":
                self._judge(plan.trees("keys"), "GROUP_BY")
                return first
            case "Distinct":
                return first
            case "Join" | "LateralJoin" | "AsOfJoin":
                return self._joined(plan, below)
            case "Union":
                return self._united(below)
            case "Intersect" | "Except":
                for each in below[1]:
                    self._add_rows(_indirect(self.origins.get(each.number, {}), "FILTER"))
                return first
            case "Expand":
                return self._expanded(plan)
            case "Generate":
                return self._generated(plan, first)
            case "CTERelationDef":
                self.shared[int(plan.fields["id"])] = first
                return first
            case "CTERelationRef":
                return self._shared(plan)
            case "WithCTE":
                return below[-1]
            case name if name in _OPAQUE:
                return self._opaque(plan, below)
            case _ if plan.children:
                return first
            case _:
                return self._relation(plan)

    def _named(self, expressions: Iterable[PlanNode]) -> list[Attribute]:
        """An attribute, or an alias that makes one."""
        output = []
        for each in expressions:
            found = _attribute(each)
            if each.name != "AttributeReference":
                self.origins[found.number] = self.of(each)
            output.append(found)
        return output

    def _joined(self, plan: PlanNode, below: list[list[Attribute]]) -> list[Attribute]:
        self._judge(plan.trees("condition"), "JOIN")
        right = [attribute for tree in plan.trees("right") for attribute in self.visit(tree.fields["plan"])]  # lateral
        kind = str(plan.fields.get("joinType"))
        return (
            below[0] if any(word in kind for word in ("LeftSemi", "LeftAnti")) else [*(a for each in below for a in each), *right]
        )

    def _united(self, below: list[list[Attribute]]) -> list[Attribute]:
        for attributes in zip(*below, strict=False):
            merged = merge(self.origins.get(each.number, {}) for each in attributes)
            self.origins[attributes[0].number] = merged
        return below[0]

    def _expanded(self, plan: PlanNode) -> list[Attribute]:
        """Rows are told by several lists of expressions each."""
        output = [_attribute(each) for each in plan.trees("output")]
        lists = [[*_flat(each)] for each in plan.fields.get("projections") or []]
        before = dict(self.origins)
        for place, each in enumerate(output):
            told = [self.of(expressions[place], before) for expressions in lists if place < len(expressions)]
            self.origins[each.number] = merge(told)
        return output

    def _generated(self, plan: PlanNode, first: list[Attribute]) -> list[Attribute]:
        made = [_attribute(each) for each in plan.trees("generatorOutput")]
        origins = _changed(merge(self.of(each) for each in plan.trees("generator")), TRANSFORMATION)
        for each in made:
            self.origins[each.number] = origins
        return first + made

    def _shared(self, plan: PlanNode) -> list[Attribute]:
        output = [_attribute(each) for each in plan.trees("output")]
        for own, other in zip(output, self.shared.get(int(plan.fields["cteId"]), []), strict=False):
            self.origins[own.number] = self.origins.get(other.number, {})
        return output

    def _opaque(self, plan: PlanNode, below: list[list[Attribute]]) -> list[Attribute]:
        origins = _changed(merge(self.origins.get(a.number, {}) for each in below for a in each), TRANSFORMATION)
        output = [_attribute(each) for name in ("output", "outputAttrs", "serializer") for each in plan.trees(name)]
        for each in output:
            self.origins[each.number] = origins
        return output

    def _relation(self, plan: PlanNode) -> list[Attribute]:
        output = [_attribute(each) for each in plan.trees("output")]
        for each in output:
            self.origins[each.number] = {Column(output[0].number, each.name): frozenset({How(DIRECT, IDENTITY)})}
        return output

    def of(self, expression: PlanNode, known: Mapping[int, Origins] | None = None) -> Origins:
        """From where the value of an expression comes."""
        known = self.origins if known is None else known

        def parts(nodes: Iterable[PlanNode]) -> Origins:
            return merge(self.of(each, known) for each in nodes)

        children = expression.children
        match expression.name:
            case "AttributeReference" | "OuterReference":
                inner = expression.trees("e") or [expression]  # what an outer reference is to
                return known.get(_attribute(inner[0]).number, {})
            case "Alias":
                return parts(children)
            case "AggregateExpression":
                judged = _indirect(parts(expression.trees("filter")), "CONDITIONAL")
                return merge([_changed(parts(children[:1]), AGGREGATION), judged])
            case "WindowExpression":
                return merge([_changed(parts(children[:1]), TRANSFORMATION), _indirect(parts(children[1:]), "WINDOW")])
            case "PivotFirst":  # of all rows of a group the value of that which has this in another column
                return merge([_indirect(parts(children[:1]), "CONDITIONAL"), parts(children[1:])])
            case "If":
                return merge([_indirect(parts(children[:1]), "CONDITIONAL"), _changed(parts(children[1:]), TRANSFORMATION)])
            case "CaseWhen":
                pairs = len(children) // 2 * 2
                values = [*children[1:pairs:2], *children[pairs:]]
                return merge([_indirect(parts(children[0:pairs:2]), "CONDITIONAL"), _changed(parts(values), TRANSFORMATION)])
            case name if name in _SUBQUERIES:
                return merge([self._subquery(expression), parts(expression.trees("outerAttrs"))])
            case name:
                return _changed(parts(children), TRANSFORMATION, masking=name in _MASKING)

    def _subquery(self, expression: PlanNode) -> Origins:
        """What it reads judges its value."""
        inner = _PlanReader(dict(self.origins), {}, self.shared)
        found = merge(inner.origins.get(each.number, {}) for tree in expression.trees("plan") for each in inner.visit(tree))
        return merge([found, inner.rows])

    def _judge(self, expressions: Iterable[PlanNode], subtype: str) -> None:
        for each in expressions:
            self._add_rows(_indirect(self.of(each), subtype))

    def _add_rows(self, origins: Origins) -> None:
        self.rows = merge([self.rows, origins])


def _attribute(node: PlanNode) -> Attribute:
    return Attribute(int(node.fields["exprId"]["id"]), str(node.fields["name"]))


def merge(several: Iterable[dict[K, frozenset[How]]]) -> dict[K, frozenset[How]]:
    found: dict[K, frozenset[How]] = {}
    for origins in several:
        for column, ways in origins.items():
            found[column] = found.get(column, frozenset()) | ways
    return found


def _changed(origins: Origins, subtype: str, *, masking: bool = False) -> Origins:
    """What is direct has at least this done to it."""

    def changed(how: How) -> How:
        if how.kind == INDIRECT:
            return how
        return How(DIRECT, max(how.subtype, subtype, key=_RANK.__getitem__), how.masking or masking)

    return {column: frozenset(map(changed, ways)) for column, ways in origins.items()}


def _indirect(origins: Origins, subtype: str) -> Origins:
    """An origin that was indirect stays what it was."""
    return {
        column: frozenset(how if how.kind == INDIRECT else How(INDIRECT, subtype, how.masking) for how in ways)
        for column, ways in origins.items()
    }
