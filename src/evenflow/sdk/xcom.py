"""XCom values as JSON that PostgreSQL's jsonb keeps, and back.

Values that JSON has are stored as they are, so any tool can read them. Values that JSON lacks, or jsonb would change or refuse,
become an object ``{"__type__": ..., "value": ...}``: tuples, sets, bytes, dates and times, timedeltas, Decimals, UUIDs, paths,
enums, dataclasses, dicts with keys that are not strings; also NaN, infinities, -0.0 and floats that are written without a fraction
(jsonb would make 1e16 an int), integers above 64 bits, and strings with ``\\u0000`` or lone surrogates.

Dataclasses and enums are stored by the name of their class. They are decoded only to classes of modules that the DAG file has
imported already: decoding never imports a module, so no stored value can choose code to load.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import XComError, XComTooLarge
from evenflow.sdk.operators.isolated_child import DECODERS
from evenflow.sdk.operators.spark_frame import SparkFrame

TYPE, VALUE = "__type__", "value"
_INT64 = 2**63


def dump(value: Any, what: str) -> bytes:
    """Returns ``value`` as JSON text. ``what`` begins messages, e.g. "The result of task 'x'".

    Raises :class:`XComError` for a type that cannot be stored, :class:`XComTooLarge` above 256 KiB.
    """
    return to_json(encode(value, what), what)


def to_json(encoded: Any, what: str) -> bytes:
    """Returns the text of what :func:`encode` made."""
    text = json.dumps(encoded, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_XCOM_BYTES:
        raise XComTooLarge(what, len(text), MAX_XCOM_BYTES)
    return text


def encode(value: Any, what: str) -> Any:
    """Returns ``value`` in JSON's own types."""
    try:
        return _encode(value, what)
    except RecursionError:
        raise XComError(
            f"{what} is nested too deep to be stored, or contains itself. Return a flat value, or write it to storage."
        ) from None


def mapped_length(encoded: Any) -> int | None:
    """Returns how many instances a mapping over this value has; None when it cannot be mapped over."""
    if isinstance(encoded, list):
        return len(encoded)
    if not isinstance(encoded, dict):
        return None
    if TYPE not in encoded:
        return len(encoded)
    return len(encoded[VALUE]) if encoded[TYPE] in ("tuple", "dict") else None


def decode(encoded: Any, what: str) -> Any:
    """Returns the value that :func:`encode` took. Raises :class:`XComError` for an unknown type."""
    if isinstance(encoded, list):
        return [decode(item, what) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    if TYPE not in encoded:
        return {key: decode(item, what) for key, item in encoded.items()}
    name = encoded[TYPE]
    if name in ("dataclass", "enum"):
        return _decode_class(encoded, what)
    if name not in _DECODERS:
        raise XComError(f"{what} has the type {name!r}, which this Evenflow does not know. Upgrade Evenflow on this worker.")
    return _DECODERS[name](decode(encoded[VALUE], what))


def _tagged(name: str, value: Any) -> dict[str, Any]:
    return {TYPE: name, VALUE: value}


def _encode(value: Any, what: str) -> Any:
    if value is None or value is True or value is False:
        return value
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value, what)
    if isinstance(value, Enum):
        return {TYPE: "enum", "class": _class_name(type(value), what), VALUE: value.name}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _encode(getattr(value, f.name), f"{what}, field {f.name!r}") for f in dataclasses.fields(value)}
        return {TYPE: "dataclass", "class": _class_name(type(value), what), VALUE: fields}
    # Subclasses of stored types, such as pandas' Timestamp or a defaultdict, are decoded as their base.
    for base, base_encoder in _ENCODERS.items():
        if isinstance(value, base):
            return base_encoder(value, what)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _encode(value.item(), what)
    raise XComError(
        f"{what} has a value of type {type(value).__module__}.{type(value).__qualname__}, which cannot be stored. Return JSON "
        "types, dates, "
        "paths or a dataclass; write anything else (a DataFrame, a model) to storage and return its path or URL."
    )


def _encode_str(value: str, what: str) -> Any:
    value = str(value)
    if "\0" in value or not _is_utf8(value):
        return _tagged("str", base64.b64encode(value.encode("utf-8", "surrogatepass")).decode())
    return value


def _is_utf8(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encode_int(value: int, what: str) -> Any:
    value = int(value)
    return value if -_INT64 <= value < _INT64 else _tagged("int", hex(value))


def _encode_float(value: float, what: str) -> Any:
    value = float(value)
    text = repr(value)
    kept = math.isfinite(value) and "e+" not in text and text != "-0.0"
    return value if kept else _tagged("float", text)


def _encode_dict(value: dict[Any, Any], what: str) -> Any:
    plain = all(type(key) is str and key != TYPE and "\0" not in key and _is_utf8(key) for key in value)
    if plain:
        return {key: _encode(item, f"{what}, item {key!r:.80}") for key, item in value.items()}
    return _tagged("dict", [[_encode(key, what), _encode(item, f"{what}, item {key!r:.80}")] for key, item in value.items()])


def _encode_list(value: Any, what: str) -> list[Any]:
    return [_encode(item, f"{what}, item {index}") for index, item in enumerate(value)]


def _encode_set(value: Any, what: str) -> list[Any]:
    """Returns items sorted by their JSON, so that equal sets are stored as equal text."""
    return sorted((_encode(item, what) for item in value), key=lambda item: json.dumps(item, sort_keys=True))


def _encode_datetime(value: datetime, what: str) -> Any:
    zone = getattr(value.tzinfo, "key", None)
    return _tagged("datetime", [value.isoformat(), zone, value.fold] if zone else value.isoformat())


def _decode_datetime(value: Any) -> datetime:
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    from zoneinfo import ZoneInfo

    text, zone, fold = value
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)


def _encode_tuple(value: tuple[Any, ...], what: str) -> Any:
    return _tagged("tuple", _encode_list(value, what))


# The order matters for subclasses: a datetime is a date.
_ENCODERS: dict[type, Callable[[Any, str], Any]] = {
    str: _encode_str,
    int: _encode_int,
    float: _encode_float,
    list: _encode_list,
    dict: _encode_dict,
    tuple: _encode_tuple,
    set: lambda value, what: _tagged("set", _encode_set(value, what)),
    frozenset: lambda value, what: _tagged("frozenset", _encode_set(value, what)),
    bytes: lambda value, what: _tagged("bytes", base64.b64encode(value).decode()),
    datetime: _encode_datetime,
    date: lambda value, what: _tagged("date", value.isoformat()),
    time: lambda value, what: _tagged("time", value.isoformat()),
    timedelta: lambda value, what: _tagged("timedelta", [value.days, value.seconds, value.microseconds]),
    Decimal: lambda value, what: _tagged("Decimal", str(value)),
    UUID: lambda value, what: _tagged("UUID", str(value)),
    SparkFrame: lambda value, what: _tagged("frame", value.told()),
    PurePath: lambda value, what: _tagged("Path", _encode_str(str(value), what)),
}

# Also zones by name, and types outside the standard library.
_DECODERS: dict[str, Callable[[Any], Any]] = {
    **DECODERS,
    "datetime": _decode_datetime,
    "frame": lambda value: SparkFrame(**value),
}


def _class_name(cls: type, what: str) -> str:
    if "<locals>" in cls.__qualname__:
        raise XComError(
            f"{what} has a value of class {cls.__qualname__}, defined inside a function: a task that reads it could not find the "
            "class. "
            "Define the class at the top of the file."
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def _decode_class(encoded: dict[str, Any], what: str) -> Any:
    module_name, _, qualname = encoded["class"].partition(":")
    cls: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        cls = getattr(cls, part, None)
    is_enum = isinstance(cls, type) and issubclass(cls, Enum)
    is_dataclass = isinstance(cls, type) and dataclasses.is_dataclass(cls)
    if not (is_enum if encoded[TYPE] == "enum" else is_dataclass):
        raise XComError(
            f"{what} has a value of the {encoded[TYPE]} {qualname} of module {module_name}, which the DAG file has not imported or "
            "which is "
            f"no {encoded[TYPE]} any more. Import it at the top of the DAG file."
        )
    if is_enum:
        return cls[encoded[VALUE]]
    return _rebuild(cls, decode(encoded[VALUE], what), f"{what}, class {qualname}")


def _rebuild(cls: Any, values: dict[str, Any], what: str) -> Any:
    """Makes an instance as pickle does, without calling ``__init__``, which may take other arguments than the fields."""
    names = {f.name for f in dataclasses.fields(cls)}
    if names != set(values):
        raise XComError(
            f"{what}: it was stored with the fields {sorted(values)} and now has {sorted(names)}. Run the task that made it again."
        )
    instance = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance
