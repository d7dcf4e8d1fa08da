"""Describes an exception in a user's file for people: one line, and a traceback without Evenflow's own frames."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from evenflow.errors import DagError, DagFileError


@dataclass(frozen=True, slots=True)
class Failure:
    """``summary`` is one line that ends with the place, ``line`` is in the file itself; paths are relative to the root."""

    summary: str
    trace: str
    line: int | None


def describe_failure(error: BaseException, file: Path, root: Path) -> Failure:
    """Describes ``error``, raised while ``file`` under ``root`` was loaded."""
    summary = str(error) if isinstance(error, DagError) else _headline(error)
    place, line = None, None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place, line = _place(Path(error.filename), error.lineno, file, root), _line_in(file, error.filename, error.lineno)
    for frame, lineno in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if not isinstance(error, SyntaxError) and Path(name).is_relative_to(root):
            place = _place(Path(name), lineno, file, root)
        line = _line_in(file, name, lineno) or line
    if place and not isinstance(error, DagError):
        summary += f" ({place})"
    notes = getattr(error, "__notes__", ())
    if isinstance(error, ImportError) and notes:
        summary += f". {notes[-1].splitlines()[0].removesuffix(':')}"
    if isinstance(error, DagFileError):
        line = error.line
    if isinstance(error, DagError):
        trace = summary + _own_frames(error.__cause__ or error, root)
    else:
        shown = traceback.TracebackException(type(error), error, _from_root(error.__traceback__, root))
        trace = "".join(shown.format() if shown.stack else shown.format_exception_only())
    return Failure(summary.replace(f"{root}/", ""), trace.replace(f"{root}/", ""), line)


def _headline(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    if isinstance(error, ImportError):  # its notes come after the place
        return f"{type(error).__name__}: {error}"
    return telling_line(error)


def telling_line(error: BaseException) -> str:
    """Returns the type of an error and the first line of its text, with the next one if that ends with a colon; of an error with
    notes the last note, which says where it comes from.
    """
    notes = [line for note in getattr(error, "__notes__", ()) if (line := str(note).strip().partition("\n")[0])]
    if notes:
        return notes[-1]
    first, *others = [line.strip() for line in "".join(traceback.format_exception_only(error)).splitlines() if line.strip()]
    return f"{first} {others[0]}" if first.endswith(":") and others else first


def _place(name: Path, lineno: int, file: Path, root: Path) -> str:
    if name == file or not name.is_relative_to(root):
        return f"line {lineno}"
    return f"{name.relative_to(root)} line {lineno}"


def _line_in(file: Path, name: str, lineno: int) -> int | None:
    return lineno if Path(name) == file else None


def _own_frames(error: BaseException, root: Path) -> str:
    """Returns the frames in the author's files, if there are several: Evenflow's own frames do not help the author."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    return "\n" + "".join(traceback.format_list(frames)) if len(frames) > 1 else ""


def _from_root(trace: TracebackType | None, root: Path) -> TracebackType | None:
    found = trace
    while found and not Path(found.tb_frame.f_code.co_filename).is_relative_to(root):
        found = found.tb_next
    return found
