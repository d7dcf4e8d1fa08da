"""``evenflow audit``."""

from __future__ import annotations

from evenflow.cli.remote import remote
from evenflow.cli.terminal import Json, print_json, print_table, say
from evenflow.runtime.exits import ExitCode


async def audit(*, json: Json = False) -> int:
    """Recompute every counter of the scheduler and compare. Exit code 1 when something is wrong.

    It reads all task instances of running runs at one instant: safe at any time, about a second for 100,000.
    """
    async with remote() as client:
        found = await client.get_audit()
    if json:
        print_json(found)
    elif found.findings:
        rows = ((f.kind, f.object, f.found, f.expected) for f in found.findings)
        print_table(("kind", "object", "is", "should be"), rows, empty="")
        say("This is a defect of Evenflow. Please report it with the lines above.", "red")
    else:
        say("Every counter is what it counts, and every lane where it should be", "green")
    return ExitCode.FAILED if found.findings else ExitCode.OK
