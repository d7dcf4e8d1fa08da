"""``evenflow doctor``: finds what is missing, and says what to type."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import output
from evenflow.runtime.diagnosis import diagnose
from evenflow.runtime.exits import ExitCode
from evenflow.runtime.findings import Diagnosis, Severity
from evenflow.runtime.settings import load_settings

_MARKS = {Severity.OK: ("✓", "green"), Severity.WARN: ("!", "yellow"), Severity.FAIL: ("✗", "bold red")}


@replies
def doctor() -> Reply:
    """Check everything that Evenflow needs, and say how to cure each problem. Exit code 3 when something fails."""
    findings = list(diagnose(load_settings()))
    failed = sum(finding.verdict is Severity.FAIL for finding in findings)
    warned = sum(finding.verdict is Severity.WARN for finding in findings)

    def tell() -> None:
        for finding in findings:
            _show(finding)
        output.print()
        output.print(_summary(failed, warned))

    data = {"findings": [asdict(finding) for finding in findings], "failed": failed, "warned": warned}
    return Reply(data, tell, ExitCode.UNREACHABLE if failed else ExitCode.OK)


def _show(finding: Diagnosis) -> None:
    mark, style = _MARKS[finding.verdict]
    output.print(Text.assemble((f"{mark} ", style), (f"{finding.what:<14}", "bold"), finding.found), soft_wrap=True)
    if finding.cure:
        for line in finding.cure.splitlines():
            output.print(Text(f"{'':<16}{line}", style=style.removeprefix("bold ")), soft_wrap=True)


def _summary(failed: int, warned: int) -> Text:
    if failed:
        return Text(f"{failed} of these must be cured before Evenflow works.", style="bold red")
    if warned:
        return Text("Evenflow works; look at what is marked with !", style="yellow")
    return Text("Everything is fine.", style="green")
