"""The tree of commands, and the one place that turns errors into words and exit codes."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Group, Parameter

from evenflow.errors import EvenflowError
from evenflow.runtime.exits import ExitCode, debugging, exit_code, unusable_home

_RUN = Group("Run", sort_key=1)
_LOOK = Group("Look and steer", sort_key=2)
_OPERATE = Group("Operate", sort_key=3)
_SERVICES = Group("Services, one by one", sort_key=4)

_EPILOGUE = """\
Exit codes: 0 fine, 1 the run failed or the audit found something, 2 wrong usage or bad input,
3 something that is needed cannot be reached.
Data commands take `--json`. `EVENFLOW_DEBUG=1` shows tracebacks."""

# noun or verb, module:attribute, help, group
_COMMANDS = (
    ("up", "up:up", "Start everything on this machine, in this terminal, until Ctrl-C.", _RUN),
    ("run", "run:run", "Run a DAG, or a DAG file, and watch it to its end.", _RUN),
    ("dags", "dags:app", "List, show, pause, unpause and delete DAGs.", _LOOK),
    ("runs", "runs:app", "Trigger, list, show, watch and cancel runs.", _LOOK),
    ("backfill", "backfill:app", "Make the runs of past dates, watch, pause and end that.", _LOOK),
    ("tasks", "tasks:app", "List the tasks of a run, read their logs, clear and mark them.", _LOOK),
    ("why", "why:why", "Say why a task does not run, who is in its way, and what to do.", _LOOK),
    ("plan", "plan:plan", "Say what would start next, and what blocks the rest.", _LOOK),
    ("drain", "service_states:drain", "Take nothing new on, wait for what is in flight, then pause.", _LOOK),
    ("resume-only", "service_states:resume_only", "Start nothing for the first time; returns and clean-up go on.", _LOOK),
    ("pause", "service_states:pause", "Start nothing for the first time: in a DAG, pool, queue, worker or at all.", _LOOK),
    ("activate", "service_states:activate", "Take everything on again: a DAG, pool, queue, worker or all.", _LOOK),
    ("pools", "pools:app", "List pools, make, change and delete them.", _LOOK),
    ("connections", "connections:app", "List, set, test and delete the connections of the database.", _LOOK),
    ("variables", "variables:app", "List, set and delete the variables of the database.", _LOOK),
    ("xcoms", "xcoms:app", "List and show what tasks returned and pushed.", _LOOK),
    ("triggers", "triggers:app", "List what deferred tasks wait for.", _LOOK),
    ("assets", "assets:app", "List assets and their events, say that one has changed.", _LOOK),
    ("quarantine", "quarantine:app", "List what is set aside because handling it failed, have it tried again.", _LOOK),
    ("settings", "settings:app", "List and change the settings that all schedulers share.", _LOOK),
    ("status", "status:status", "What runs, what waits, and whether all services are well.", _LOOK),
    ("events", "events:app", "Who changed what; keep it outside the database, and compare.", _LOOK),
    ("doctor", "doctor:doctor", "Check everything that Evenflow needs, and say how to cure what is wrong.", _OPERATE),
    ("audit", "audit:audit", "Recompute every counter of the scheduler and compare.", _OPERATE),
    ("db", "db:app", "Migrate, check, start, stop and open the database.", _OPERATE),
    ("secrets", "secrets:app", "Change the keys that seal connections and variables.", _OPERATE),
    ("tokens", "tokens:app", "Make tokens for people and services.", _OPERATE),
    ("version", "version:version", "Versions of Evenflow and of what it stands on.", _OPERATE),
    ("scheduler", "services:scheduler", "Decide which task runs when.", _SERVICES),
    ("api", "services:api", "Serve people, tools and the services that run user code.", _SERVICES),
    ("processor", "services:processor", "Read the DAG files of a folder.", _SERVICES),
    ("worker", "services:worker", "Run tasks.", _SERVICES),
    ("triggerer", "services:triggerer", "Run the triggers that deferred tasks wait for.", _SERVICES),
)


_NAMES = frozenset(name for name, *_ in _COMMANDS)


def build_app(chosen: str | None = None) -> App:
    """The tree of commands. The page of the ``chosen`` verb is its docstring; the others, whose modules are then not imported,
    are told by their line in the table above. Without a choice all verbs are told by their docstrings."""
    app = App(
        name="evenflow",
        help="A workflow scheduler on PostgreSQL: nothing that can run waits behind something that cannot.",
        help_epilogue=_EPILOGUE if chosen not in _NAMES else "",
        help_format="markdown" if chosen in _NAMES else "plaintext",  # formatting is slow, and the list of commands needs none
        default_parameter=Parameter(show_default=_shown_default),
        version=_version,
        version_flags="--version",
    )
    for position, (name, path, text, group) in enumerate(_COMMANDS):
        short = None if chosen in (None, name) and not path.endswith(":app") else text  # a noun has no other text
        app.command(f"evenflow.cli.{path}", name=name, help=short, group=group, sort_key=position)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    app = build_app(arguments[0] if arguments else "")
    try:
        result = app(arguments, exit_on_error=False, print_error=True, result_action="return_value")
    except CycloptsError:
        return ExitCode.USAGE
    except EvenflowError as error:
        return _explain(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as head does
        return _silenced()
    except OSError as error:
        unusable = unusable_home(error)
        return _explain(unusable) if unusable else _confess()
    except Exception:
        return _confess()
    return result if isinstance(result, int) else ExitCode.OK


def _explain(error: EvenflowError) -> int:
    from rich.text import Text

    from evenflow.cli.terminal import errors

    if debugging():
        traceback.print_exc()
    errors.print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
    return exit_code(error)


def _confess() -> int:
    from evenflow.cli.terminal import errors

    traceback.print_exc()
    errors.print("[bold red]This is a defect of Evenflow.[/] Please report it with the lines above.")
    return ExitCode.BUG


def _silenced() -> int:
    import os
    import sys

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains when it flushes
    return ExitCode.OK


def _shown_default(value: object) -> str | None:
    return None if value in (None, False) else str(value)


def _version() -> str:
    from importlib.metadata import version

    return version("evenflow")
