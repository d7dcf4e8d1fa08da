"""What a task or a group is expanded over: checked where it is written, an expression over lengths for the scheduler, and the
arguments of one instance where that runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenflow.core import model
from evenflow.core.limits import MAX_MAP_LENGTH
from evenflow.errors import BadMapping, XComError
from evenflow.sdk.mapped.partials import UNPACKED
from evenflow.sdk.mapped.sequences import Elements, Results, length_of
from evenflow.sdk.references import Reference
from evenflow.sdk.xcomarg import RETURN_VALUE, Combinable, XComArg


class ExpandedInputs:
    """``inputs`` are by argument: one instance for each combination. With ``unpack`` the only input, :data:`UNPACKED`, has a dict
    of arguments for each instance. ``owner`` begins messages; ``taken`` are the arguments that all instances share.
    """

    def __init__(self, owner: str, inputs: Mapping[str, Any], *, unpack: bool, taken: Mapping[str, Any]) -> None:
        self.owner, self.unpack, self.taken = owner, unpack, frozenset(taken)
        self.call = "expand_kwargs" if unpack else "expand"
        self.inputs = {name: self._checked(name, value) for name, value in inputs.items()}
        self._check_size()

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping:
        """``index_of`` maps a task id to its task index."""
        return model.Mapping(inputs=tuple(length_of(name, value, index_of) for name, value in self.inputs.items()))

    def arguments(self, map_index: int, map_length: int | None, results: Results) -> dict[str, Any]:
        """Returns the arguments of one instance. Raises :class:`XComError` when the inputs have changed since ``map_length`` was
        decided.
        """
        elements = Elements(self.owner, results)
        lengths = [elements.length(value) for value in self.inputs.values()]
        total = math.prod(lengths)
        if map_index >= total or (map_length is not None and map_length != total):
            expanded = map_length if map_length is not None else f"at least {map_index + 1}"
            raise XComError(
                f"{self.owner} was expanded to {expanded} instances, but what it maps over now makes {total}. A list in a DAG file "
                "must be the same each time the file is loaded: no clock, no directory listing. Make such a list in a task."
            )
        found: dict[str, Any] = {}
        for name, value in reversed(self.inputs.items()):  # the last varies fastest
            map_index, index = divmod(map_index, lengths.pop())
            found[name] = elements.at(value, index)
        return self._unpacked(found[UNPACKED]) if self.unpack else dict(reversed(found.items()))

    def example(self) -> dict[str, Any] | None:
        """Returns the arguments of some instance, with references for values that only tasks know; None where no names are
        known.
        """
        if not self.unpack:
            known = all(isinstance(value, Reference) or value for value in self.inputs.values())
            return {n: v if isinstance(v, Reference) else v[0] for n, v in self.inputs.items()} if known else None
        value = self.inputs[UNPACKED]
        return None if isinstance(value, Reference) or not value or isinstance(value[0], Reference) else self._unpacked(value[0])

    def _unpacked(self, arguments: Any) -> dict[str, Any]:
        if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
            raise BadMapping(
                f"{self.owner}: expand_kwargs() needs a dict of arguments for each instance, e.g. {{'name': 1}}, not "
                f"{arguments!r:.80}."
            )
        for name in arguments:
            if name in self.taken:
                raise BadMapping(f"{self.owner}: {name!r} is given to both partial() and expand_kwargs(). Remove one.")
        return dict(arguments)

    def _checked(self, name: str, value: Any) -> Any:
        if isinstance(value, Combinable):
            for source in value.sources():
                self._note_item(source)
            return value
        if isinstance(value, dict) and not self.unpack:
            return list(value.items())
        if isinstance(value, (list, tuple, range)):
            if self.unpack:
                for arguments in value:
                    self._unpacked(arguments if not isinstance(arguments, Reference) else {})
            return list(value)
        if self.unpack:
            raise BadMapping(
                f"{self.owner}: expand_kwargs() needs a list of dicts or the result of a task, not {value!r:.80} of type "
                f"{type(value).__name__}. Type: .expand_kwargs([{{...}}, {{...}}])"
            )
        is_other_iterable = hasattr(value, "__iter__") and not isinstance(value, (str, bytes, Reference))
        cure = f".expand({name}=list(...))" if is_other_iterable else f".partial({name}=...)"
        raise BadMapping(
            f"{self.owner}: expand() needs a list, a dict or the result of a task for {name!r}, not {value!r:.80} of type "
            f"{type(value).__name__}. Type: {cure}"
        )

    def _note_item(self, value: XComArg) -> None:
        """Notes an item of a result: a mapping over it needs it as an XCom of its own, because the scheduler must know its
        length.
        """
        if not value.path or value.task.is_mapped:
            return
        if len(value.path) > 1 or not isinstance(value.path[0], str) or value.key != RETURN_VALUE:
            raise BadMapping(
                f"{self.owner}: {self.call}() can map over a result or over one named item of it, not over {value!r}. "
                "Make a task that returns just that list."
            )
        value.task.mapped_items.add(value.path[0])

    def _check_size(self) -> None:
        if not self.inputs:
            raise BadMapping(f"{self.owner}: expand() needs at least one argument to map over, e.g. .expand(name=[1, 2, 3])")
        literals: list[Sequence[Any]] = [value for value in self.inputs.values() if not isinstance(value, Reference)]
        total = math.prod(map(len, literals))
        if total > MAX_MAP_LENGTH:
            raise BadMapping(
                f"{self.owner}: {self.call}() makes {total:,} instances, at most {MAX_MAP_LENGTH:,} are allowed. "
                "Map over batches of the elements."
            )
