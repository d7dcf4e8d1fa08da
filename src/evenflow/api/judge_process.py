"""What runs inside the API's template and its children: ``python -m evenflow.api.judge_process FD``.

Each child answers one question about authors' data, and has nothing else: no database, no secret, no network.
Question and answer are the bodies of frames; both are MessagePack.
"""

from __future__ import annotations

from typing import Any

import msgspec

from evenflow.api.specs import checked_spec
from evenflow.core.model import RunParamSpec
from evenflow.errors import DagError, ParamError
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.template import serve_template
from evenflow.sdk.param_schema import checked_params


class JudgedSpec(msgspec.Struct, array_like=True):
    """``spec`` is canonical JSON; without one, ``error`` says what is wrong."""

    spec: str | None = None
    error: str | None = None


class ParamsQuestion(msgspec.Struct):
    params: dict[str, RunParamSpec]
    given: dict[str, Any]


class JudgedParams(msgspec.Struct):
    """``values`` has the value of every parameter; without it, ``error`` says what is wrong, and ``hint`` what to do."""

    values: dict[str, Any] | None = None
    error: str = ""
    hint: str = ""


def judge_specs(texts: list[str]) -> list[JudgedSpec]:
    return [_judged(text) for text in texts]


def judge_params(question: ParamsQuestion) -> JudgedParams:
    try:
        return JudgedParams(values=checked_params(question.params, question.given))
    except ParamError as error:
        return JudgedParams(error=error.detail, hint=error.hint)
    except RecursionError:
        return JudgedParams(error="The parameters cannot be checked: a schema of theirs leads back to itself.")


def _judged(text: str) -> JudgedSpec:
    try:
        return JudgedSpec(spec=checked_spec(text).to_json())
    except DagError as error:
        return JudgedSpec(error=str(error))


def prepare(config: FrameHeader) -> None:
    """Imports what the first schema needs, so that all children share it."""
    judge_params(ParamsQuestion({"n": RunParamSpec(default=1, schema={"type": "integer"})}, {}))


def run(prepared: None, job: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    _, body = link.ask({"tell": "begun"})
    if job["question"] == "specs":
        return {"tell": "judged"}, msgspec.msgpack.encode(judge_specs(msgspec.msgpack.decode(body, type=list[str])))
    return {"tell": "judged"}, msgspec.msgpack.encode(judge_params(msgspec.msgpack.decode(body, type=ParamsQuestion)))


if __name__ == "__main__":
    serve_template(prepare, run)
