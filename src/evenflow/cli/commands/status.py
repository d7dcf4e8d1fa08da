"""``evenflow status`` and ``evenflow audit``: the condition of the system."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import local_time, print_table, say
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.limits import MOST_COUNTED, PARTITIONS_LEAST
from evenflow.core.model import instance_name
from evenflow.core.object_names import in_words, title, way_to_activate
from evenflow.core.quantities import counted, duration
from evenflow.core.service_states import ObjectKind
from evenflow.core.why import OUTRUN_CURE
from evenflow.runtime.exits import ExitCode


@replies
async def status() -> Reply:
    """Running and waiting work, and whether all services are healthy. Exit code 3 when a kind of service is missing."""
    async with remote() as client:
        found = await client.get_status()
    return Reply(found, lambda: _show(found), ExitCode.UNREACHABLE if found.missing else ExitCode.OK)


@replies
async def audit() -> Reply:
    """Recompute every counter of the scheduler and compare. Exit code 1 when something is wrong.

    It reads all task instances of running runs at one instant: safe at any time, about a second for 100,000.
    """
    async with remote() as client:
        found = await client.get_audit()
    if not found.findings:
        return Reply(found, lambda: say("Every counter is what it counts, and every lane where it should be", "green"))

    def tell() -> None:
        rows = ((f.kind, f.object, f.found, f.expected) for f in found.findings)
        print_table(("kind", "object", "is", "should be"), rows, empty="")
        say("This is a defect of Evenflow. Please report it with the lines above.", "red")

    return Reply(found, tell, ExitCode.FAILED)


def _show(found: rest.system.Status) -> None:
    now = datetime.now(UTC)
    closed = {each.name: each.state for each in found.not_active if each.kind == ObjectKind.WORKER}
    rows = (
        (
            s.kind,
            s.name,
            _health(s, closed.get(s.name) if s.kind == ObjectKind.WORKER else None),
            duration(s.beat_age_s),
            duration((now - s.started_at).total_seconds()),
            _doing(s),
            f"{s.host} {s.pid}",
        )
        for s in found.services
    )
    print_table(("service", "name", "state", "#beat", "#up for", "busy", "host, pid"), rows, empty="No service has registered.")
    say("")
    queues = ((q.queue, q.waiting, q.running, duration(q.oldest_waiting_s)) for q in found.queues)
    print_table(("queue", "#waiting", "#running", "#longest wait"), queues, empty="No task runs, and none waits for a worker.")
    for queue in found.queues:
        if queue.trouble is not None:
            say(queue.trouble, "red" if queue.fleet is None else "yellow")
    for executor in found.executors:
        if executor.trouble is not None:
            say(executor.trouble, "red")
    for t in found.outrun:
        what = f"{t.dag_id}/{t.run_id} {instance_name(t.task_id, t.map_index)}"
        say(f"Worker {t.worker} on {t.host} cannot end what {what} has started: that forks more quickly than it is killed.", "red")
        say(OUTRUN_CURE, "red")
    if found.pace is not None:
        say(f"{counted(found.pace.starts, 'task')} started in the last minute{_late(found.pace.late_s)}")
    if found.runs_queued:
        say(f"{_runs_queued(found.runs_queued)}, those of paused DAGs included. To see them: evenflow runs list --state queued")
    say("")
    database = found.database
    size = database.database_bytes / 1e6
    say(f"PostgreSQL {database.server_version}, schema version {database.schema_version}, {size:,.0f} MB; Evenflow {found.version}")
    if found.inbox:
        say(f"{found.inbox} reports wait for a scheduler, the oldest for {duration(found.oldest_report_s)}", "yellow")
    if found.quarantined:
        what = ", ".join(f"{count} of kind {kind}" for kind, count in sorted(found.quarantined.items()))
        say(f"In quarantine, because handling it failed: {what}. To see why: evenflow quarantine list", "red")
    if found.history_days_ahead < PARTITIONS_LEAST and any(s.kind == "scheduler" and s.healthy for s in found.services):
        days = counted(max(found.history_days_ahead, 0), "day")
        say(f"History has partitions for {days} ahead only. The schedulers' logs say what keeps them from making more.", "red")
    for each in found.not_active:
        _tell_service_state(each)
    if told := _about_plugins(found.services):
        say(f"{counted(told, 'warning')} about plugins of environments. To see each: evenflow dags sources", "yellow")
    for kind in found.missing:
        if kind == "triggerer":
            waiting = counted(found.triggers_waiting + found.triggers_running, "deferred task")
            say(f"Nothing runs the triggers of {waiting}.", "red")
        say(f"No {kind} is healthy. Start one: evenflow {kind} (or everything: evenflow up)", "red")


def _about_plugins(services: list[rest.system.ServiceStatus]) -> int:
    bundles = [bundle for service in services if service.healthy for bundle in service.detail.get("bundles", [])]
    return len({warning for bundle in bundles for warning in bundle.get("warnings", [])})


def _late(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f", 95 % of them at most {duration(seconds) if seconds >= 1 else f'{seconds * 1000:g} ms'} late"


def _runs_queued(count: int) -> str:
    if count >= MOST_COUNTED:
        return f"At least {count:,} runs have not begun"
    return f"{counted(count, 'run')} {'has' if count == 1 else 'have'} not begun"


def _tell_service_state(found: rest.service_states.ObjectServiceState) -> None:
    since = f" since {local_time(found.since)}" if found.since else ""
    by = f", by {found.actor}" if found.actor else ""
    words = in_words(found.state) + (f" ({found.reason})" if found.reason else "")
    what = title(found.kind, found.name)
    say(f"{what} is {words}{since}{by}. To end that: {way_to_activate(found.kind, found.name)}", "yellow")


def _health(service: rest.system.ServiceStatus, closed: str | None) -> Text:
    """Returns the service's own state, or ``closed``, the state that a person has set."""
    if service.healthy and service.state == "active" and closed is not None:
        return Text(closed, style="yellow")
    if service.healthy:
        return Text(service.state, style="green" if service.state == "active" else "yellow")
    return Text(
        service.state if service.state in ("stopped", "lost") else "silent",
        style="bright_black" if service.state == "stopped" else "red",
    )


def _doing(service: rest.system.ServiceStatus) -> str:
    detail = service.detail
    if not service.healthy:
        return ""  # its work is sent to others
    if service.kind == "worker" and "slots" in detail:
        resumes = f" + {detail['resume_slots']} for resumes" if detail.get("resume_slots") else ""
        return f"{detail.get('running', 0)} of {counted(detail['slots'], 'slot')}{resumes}"
    if service.kind == "triggerer" and "capacity" in detail:
        return f"{detail.get('running', 0)} of {counted(detail['capacity'], 'trigger')}"
    if service.kind == "autoscaler" and "acts" in detail:
        return "acts" if detail["acts"] else "stands by"
    return ""
