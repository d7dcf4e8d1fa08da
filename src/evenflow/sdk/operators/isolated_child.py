"""The program in the other Python: ``python isolated_child.py JOB RESULT``, both files of JSON. It imports only the standard
library and runs on Python 3.8 and newer.

JOB    {"file", "source", "function", "args", "kwargs"}
RESULT {"value"} or {"error": {"type", "bases", "message"}}

Values are those of evenflow.sdk.xcom, where the standard library has their types.
"""

import __future__

import base64
import datetime
import decimal
import json
import pathlib
import sys
import traceback
import uuid
from typing import Any, Callable, Dict, List, Tuple  # noqa: UP035 - for Python 3.8

DECODERS: Dict[str, Callable[[Any], Any]] = {  # noqa: UP006
    "str": lambda value: base64.b64decode(value).decode("utf-8", "surrogatepass"),
    "int": lambda value: int(value, 16),
    "float": float,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "bytes": base64.b64decode,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda value: datetime.timedelta(*value),
    "Decimal": decimal.Decimal,
    "UUID": uuid.UUID,
    "Path": pathlib.Path,
    "frame": dict,  # a DataFrame: its place and its schema
}
ENCODERS: List[Tuple[type, str, Callable[[Any], Any]]] = [  # noqa: UP006  # a datetime is a date
    (datetime.datetime, "datetime", lambda value: value.isoformat()),
    (datetime.date, "date", lambda value: value.isoformat()),
    (datetime.time, "time", lambda value: value.isoformat()),
    (datetime.timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (decimal.Decimal, "Decimal", str),
    (uuid.UUID, "UUID", str),
    (pathlib.PurePath, "Path", str),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()),
]


def decode(value: Any) -> Any:
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "__type__" not in value:
        return {key: decode(item) for key, item in value.items()}
    name = value["__type__"]
    if name == "datetime":
        text = value["value"] if isinstance(value["value"], str) else value["value"][0]
        return datetime.datetime.fromisoformat(text)
    if name not in DECODERS:
        raise TypeError(f"an argument is a {name}, which this Python cannot be given: use JSON types")
    return DECODERS[name](decode(value["value"]))


def encode(value: Any) -> Any:
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != "__type__" for key in value):
            return {key: encode(item) for key, item in value.items()}
        return {"__type__": "dict", "value": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"__type__": "tuple", "value": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return {"__type__": type(value).__name__, "value": [encode(item) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind, name, text in ENCODERS:
        if isinstance(value, kind):
            return {"__type__": name, "value": text(value)}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return encode(value.item())
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    raise TypeError(f"the result has a value of type {name}, which cannot be brought back: return JSON types")


def run(job: Dict[str, Any]) -> Any:  # noqa: UP006
    names: Dict[str, Any] = {  # noqa: UP006
        "__name__": "isolated_task",
        "__file__": job["file"],
    }
    flags = __future__.annotations.compiler_flag  # annotations may name packages that are not installed here
    exec(compile(job["source"], job["file"], "exec", flags=flags, dont_inherit=True), names)
    return encode(names[job["function"]](*decode(job["args"]), **decode(job["kwargs"])))


def main(job_file: str, result_file: str) -> int:
    with open(job_file, encoding="utf-8") as file:
        job = json.load(file)
    try:
        result = {"value": run(job)}
    except Exception as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
        bases = [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"]
        name = type(error).__qualname__
        if type(error).__module__ != "builtins":
            name = type(error).__module__ + "." + name
        result = {"error": {"type": name, "bases": bases, "message": str(error)}}
    with open(result_file, "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0 if "value" in result else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
