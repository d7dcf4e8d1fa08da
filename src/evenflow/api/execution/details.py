"""What a service may say of itself. Autoscalers, schedulers and pages read it as it is stored, that of all services in one
statement: so a value of another type, or a foreign queue, would harm all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evenflow.api.refusals import Refused
from evenflow.core.service import UserCodeKind
from evenflow.wire.messages import DETAILS, ProcessorDetail


def served(kind: UserCodeKind, detail: Mapping[str, Any]) -> list[str]:
    """Returns the queues, or bundles, that the service says it serves. Raises :class:`Refused` for what cannot be read."""
    try:
        said = msgspec.convert(dict(detail), DETAILS[kind])
    except msgspec.ValidationError as error:
        raise Refused(422, "bad_value", f"A {kind} says of itself what is none of its values: {error}.") from None
    return [bundle.name for bundle in said.bundles] if isinstance(said, ProcessorDetail) else said.queues
