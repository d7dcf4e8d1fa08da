"""The tree of commands, and the one place that turns errors into words and exit codes."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from cyclopts import App, CoercionError, CycloptsError, MissingArgumentError, Parameter, UnknownCommandError

from evenflow.cli.commands import COMMANDS, INSTEAD
from evenflow.cli.input.questions import Declined
from evenflow.cli.output.terminal import errors
from evenflow.errors import EvenflowError
from evenflow.runtime.exits import ExitCode, debugging, exit_code, unusable_home

if TYPE_CHECKING:
    from rich.text import Text

_EPILOGUE = """\
Exit codes: 0 fine, 1 the run failed or the audit found something, 2 wrong
usage or bad input, 3 something that is needed cannot be reached.
Data commands take `--json`. `EVENFLOW_DEBUG=1` shows tracebacks."""

_KINDS = {int: "a whole number", float: "a number", datetime: "a date, such as 2026-01-31 or 2026-01-31T06:00"}
_NAMES = frozenset(name for name, *_ in COMMANDS)


def build_app(chosen: str | None = None) -> App:
    """Returns the tree of commands. The page of the ``chosen`` verb is its docstring. Modules of other verbs are not imported;
    their help is their line in COMMANDS. Without a choice the help of all verbs is their docstrings.
    """
    app = App(
        name="evenflow",
        help="A workflow scheduler on PostgreSQL: nothing that can run waits behind something that cannot.",
        help_epilogue=_EPILOGUE if chosen not in _NAMES else "",
        help_format="markdown" if chosen in _NAMES else "plaintext",  # formatting is slow, and the list of commands needs none
        default_parameter=Parameter(show_default=_shown_default),
        version=_version,
        version_flags="--version",
    )
    for position, (name, path, text, group) in enumerate(COMMANDS):
        short = None if chosen in (None, name) and not path.endswith("app") else text  # a noun has no other text
        app.command(f"evenflow.cli.commands.{path}", name=name, help=short, group=group, sort_key=position)
    return app


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code."""
    app = build_app(arguments[0] if arguments else "")
    try:
        result = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        errors.print(_wrong_usage(error), soft_wrap=True)
        return ExitCode.USAGE
    except Declined:
        print("Nothing was done.")
    except EvenflowError as error:
        return _explain(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the output is gone, for example head
        return _silenced()
    except OSError as error:
        unusable = unusable_home(error)
        return _explain(unusable) if unusable else _confess()
    except Exception:
        return _confess()
    else:
        return result if isinstance(result, int) else ExitCode.OK
    return ExitCode.OK


def _wrong_usage(error: CycloptsError) -> Text:
    """Returns the message on one line, like other errors. Its last sentence is the command for more."""
    from rich.text import Text

    typed = " ".join(("evenflow", *(error.command_chain or ())))
    more = "all commands" if isinstance(error, UnknownCommandError) else "what it takes"
    return Text.assemble(("Error: ", "bold red"), _what_is_wrong(error), f" To see {more}, type: {typed} --help")


def _what_is_wrong(error: CycloptsError) -> str | Text:
    if (
        isinstance(error, UnknownCommandError)
        and not error.command_chain
        and (typed := (error.unused_tokens or [""])[0]) in INSTEAD
    ):
        return f'Unknown command "{typed}". {INSTEAD[typed]}'
    name = "" if error.argument is None else error.argument.name
    if isinstance(error, CoercionError) and error.token is not None and error.target_type in _KINDS:
        return f"{error.token.keyword or name} is {_KINDS[error.target_type]}, not {error.token.value!r}."
    if type(error) is MissingArgumentError and error.keyword is not None:
        return f"{error.keyword} needs a value."
    if type(error) is MissingArgumentError and not (name.startswith("-") and error.unused_tokens):  # there it knows the meaning
        return f"{name} is missing."
    return error.__rich__()


def _explain(error: EvenflowError) -> int:
    from rich.text import Text

    if debugging():
        traceback.print_exc()
    errors.print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
    return exit_code(error)


def _confess() -> int:

    traceback.print_exc()
    errors.print("[bold red]This is a defect of Evenflow.[/] Please report it with the lines above.")
    return ExitCode.BUG


def _silenced() -> int:
    import os
    import sys

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the interpreter complains when it flushes
    return ExitCode.OK


def _shown_default(value: object) -> str | None:
    return None if value in (None, False) else str(value)


def _version() -> str:
    from importlib.metadata import version

    return version("evenflow")
