"""What each kind of problem means, for those who follow the type of one."""

from __future__ import annotations

from evenflow.api.refusals import Refused
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest import PREFIX
from evenflow.contracts.rest.problems import PATH, TITLES, ProblemKind

routes = Routes("Problems")


def type_of(code: str) -> str:
    return f"{PREFIX}{PATH}/{code}"


@routes.get(f"{PATH}/{{code}}", None)
async def get_problem_kind(code: str) -> ProblemKind:
    """What a `type` of an answer stands for that refuses a request."""
    if code not in TITLES:
        raise Refused(404, "not_found", f"There is no problem {code!r:.100}.")
    return ProblemKind(type=type_of(code), title=TITLES[code])
