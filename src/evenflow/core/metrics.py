"""Every metric of Evenflow, declared once. Services report no other metric; docs, dashboard and alerts are tested against this
list.
"""

from __future__ import annotations

from evenflow.core.meter import Metric, MetricKind
from evenflow.core.service import ServiceKind

SYSTEM = frozenset[ServiceKind]()
SCHEDULER = frozenset({ServiceKind.SCHEDULER})
WORKER = frozenset({ServiceKind.WORKER})
PROCESSOR = frozenset({ServiceKind.PROCESSOR})
TRIGGERER = frozenset({ServiceKind.TRIGGERER})
AUTOSCALER = frozenset({ServiceKind.AUTOSCALER})
LAUNCHER = frozenset({ServiceKind.LAUNCHER})
API = frozenset({ServiceKind.API})
EVERY = SCHEDULER | WORKER | PROCESSOR | TRIGGERER | AUTOSCALER | LAUNCHER | API

_declared: list[Metric] = []


def _declare(kind: MetricKind, name: str, tellers: frozenset[ServiceKind], meaning: str, labels: tuple[str, ...]) -> Metric:
    metric = Metric(name, kind, tellers, meaning, labels)
    _declared.append(metric)
    return metric


def counter(name: str, tellers: frozenset[ServiceKind], meaning: str, *labels: str) -> Metric:
    return _declare(MetricKind.COUNTER, name, tellers, meaning, labels)


def gauge(name: str, tellers: frozenset[ServiceKind], meaning: str, *labels: str) -> Metric:
    return _declare(MetricKind.GAUGE, name, tellers, meaning, labels)


def histogram(name: str, tellers: frozenset[ServiceKind], meaning: str, *labels: str) -> Metric:
    return _declare(MetricKind.HISTOGRAM, name, tellers, meaning, labels)


# -- the system, from the database -------------------------------------------------------------------------------------

SERVICE_HEALTHY = gauge(
    "evenflow_service_healthy", SYSTEM, "1 while its lease holds, 0 when it has missed its beats.", "kind", "name"
)
SERVICE_BEAT_AGE = gauge("evenflow_service_beat_age_seconds", SYSTEM, "Time since its last beat.", "kind", "name")
LIMIT_CAPACITY = gauge("evenflow_limit_capacity", SYSTEM, "Slots of a pool or executor.", "kind", "name")
LIMIT_USED = gauge("evenflow_limit_used", SYSTEM, "Slots of it that are taken.", "kind", "name")
DISPATCH_WAITING = gauge("evenflow_dispatch_waiting", SYSTEM, "Tries that wait for a worker.", "queue")
DISPATCH_UNSERVED = gauge(
    "evenflow_dispatch_unserved",
    SYSTEM,
    "Tries that wait in a queue that no worker, no fleet and no executor with a launcher serves.",
    "queue",
)
EXECUTOR_LAUNCHERS = gauge(
    "evenflow_executor_launchers", SYSTEM, "Launchers that live and serve an executor of Celery or Kubernetes.", "executor"
)
DISPATCH_RUNNING = gauge("evenflow_dispatch_running", SYSTEM, "Tries that a worker has.", "queue")
DISPATCH_OLDEST = gauge(
    "evenflow_dispatch_oldest_waiting_seconds", SYSTEM, "For how long the first of them has waited for a worker.", "queue"
)
LANES = gauge(
    "evenflow_lanes",
    SYSTEM,
    "Groups of ready tasks that wait for selection: open, parked on a limit, or of a paused DAG. At 10,000 counting ends.",
    "state",
)
TASKS_READY = gauge("evenflow_tasks_ready", SYSTEM, "Tasks in these groups: ready, and not started.")
RUNS_RUNNING = gauge("evenflow_runs_running", SYSTEM, "Runs that take a place of their DAG's max_active_runs.")
RUNS_QUEUED = gauge("evenflow_runs_queued", SYSTEM, "Runs that wait to be created or for such a place. At 10,000 counting ends.")
REPORTS_WAITING = gauge("evenflow_reports_waiting", SYSTEM, "Reports that no scheduler has applied yet. At 10,000 counting ends.")
REPORTS_OLDEST = gauge("evenflow_reports_oldest_seconds", SYSTEM, "Age of the oldest of them.")
TRACES_WAITING = gauge(
    "evenflow_traces_waiting", SYSTEM, "Ends of runs whose traces are to be sent to the collector. At 10,000 counting ends."
)
TRIGGERS_WAITING = gauge(
    "evenflow_triggers_waiting", SYSTEM, "Triggers that no triggerer has. At 10,000 counting ends. Above 0 for long: start another."
)
TRIGGERS_RUNNING = gauge("evenflow_triggers_running", SYSTEM, "Triggers that a triggerer has. At 10,000 counting ends.")
QUARANTINED = gauge(
    "evenflow_quarantined", SYSTEM, "Runs and other things that are set aside because handling them raised an exception.", "kind"
)
DAG_FILES_BROKEN = gauge("evenflow_dag_files_broken", SYSTEM, "DAG files that cannot be loaded.")
HISTORY_DAYS_AHEAD = gauge(
    "evenflow_history_days_ahead",
    SYSTEM,
    "Days after today for which history has its partition; -1 when today has none. Schedulers keep it at 7.",
)
DATABASE_BYTES = gauge("evenflow_database_bytes", SYSTEM, "Size of the database.")
DATABASE_OLDEST_SNAPSHOT = gauge(
    "evenflow_database_oldest_snapshot_seconds",
    SYSTEM,
    "Age of the oldest snapshot; one of minutes slows every round, as PostgreSQL cannot clean up behind it.",
)
DATABASE_CONNECTIONS = gauge("evenflow_database_connections", SYSTEM, "Connections to the database, by what they do.", "state")
DATABASE_LOCK_WAITS = gauge("evenflow_database_lock_waits", SYSTEM, "Connections that wait for a lock at this moment.")
DATABASE_LIVE_ROWS = gauge("evenflow_database_live_rows", SYSTEM, "Rows of a hot table, as PostgreSQL estimates them.", "table")
DATABASE_DEAD_ROWS = gauge(
    "evenflow_database_dead_rows", SYSTEM, "Dead rows of a hot table that vacuum has not taken away yet.", "table"
)

# -- every service -----------------------------------------------------------------------------------------------------

SERVICE_INFO = gauge("evenflow_service_info", EVERY, "Always 1; the version says what runs.", "version")
SERVICE_LIVE = gauge("evenflow_service_live", EVERY, "1 while all its loops turn, as /health/live says.")
SERVICE_READY = gauge("evenflow_service_ready", EVERY, "1 while it can do its work, as /health/ready says.")
SERVICE_START_TIME = gauge("evenflow_service_start_time_seconds", EVERY, "When its process started, in seconds since 1970.")
SERVICE_ANSWERED = gauge(
    "evenflow_service_last_answered_beat_seconds", EVERY, "Time since its last beat that was answered, by its own clock."
)
PROCESS_MEMORY = gauge("evenflow_process_resident_bytes", EVERY, "Memory of its process, without the processes of tries.")
PROCESS_CPU = counter("evenflow_process_cpu_seconds", EVERY, "CPU time of its process.")
PROCESS_FILES = gauge("evenflow_process_open_files", EVERY, "Open file descriptors of its process.")
LOOP_LAG = histogram("evenflow_event_loop_lag_seconds", EVERY, "How late its event loop wakes up; measured once a second.")

# -- schedulers --------------------------------------------------------------------------------------------------------

TURNS = counter("evenflow_scheduler_turns", SCHEDULER, "Transactions of this scheduler.")
TURN_SECONDS = histogram("evenflow_scheduler_turn_seconds", SCHEDULER, "How long such a transaction takes.")
ROUNDS = counter("evenflow_scheduler_rounds", SCHEDULER, "Transactions that selected what starts.")
STARTS = counter("evenflow_scheduler_starts", SCHEDULER, "Tries that it sent to workers.")
MOVES = counter("evenflow_scheduler_moves", SCHEDULER, "Changes of a task instance's state.")
LANES_TOUCHED = counter("evenflow_scheduler_lanes_touched", SCHEDULER, "Lanes that its rounds decided about.")
ROWS_READ = counter("evenflow_scheduler_rows_read", SCHEDULER, "Rows that its rounds read.")
REPORTS = counter("evenflow_scheduler_reports", SCHEDULER, "Reports that it applied.")
QUEUED_TIMEOUTS = counter(
    "evenflow_scheduler_queued_timeouts",
    SCHEDULER,
    "Tries that no worker had claimed within the queued_timeout of their tasks, by what became of them: tell, fail, elsewhere.",
    "policy",
)
STALE_REPORTS = counter("evenflow_scheduler_stale_reports", SCHEDULER, "Reports of tries that were no longer current.")
STARTABLE_SECONDS = histogram(
    "evenflow_task_startable_seconds", SCHEDULER, "For how long tasks could have started before they did."
)
RESUME_SECONDS = histogram(
    "evenflow_task_resume_seconds", SCHEDULER, "From the event of a deferred task to its dispatch, of those that resume directly."
)
ORDINARY_RESUMES = counter(
    "evenflow_task_ordinary_resumes", SCHEDULER, "Deferred tasks that wait for their limits again: direct_resume is off, or failed."
)
PICKS = counter("evenflow_scheduler_picks", SCHEDULER, "Runs with work that it tried to take.")
CONTENDED_PICKS = counter(
    "evenflow_scheduler_contended_picks", SCHEDULER, "Of these, runs that another scheduler had at that moment (SKIP LOCKED)."
)
SAMPLES = counter(
    "evenflow_scheduler_samples",
    SCHEDULER,
    "Looks at what its transactions do, four a second: idle, working, or waiting for a lock.",
    "state",
)
REPAIRS = counter(
    "evenflow_selection_repairs", SCHEDULER, "Lost wake-ups that a sweep has repaired. Above 0 is a defect: please report it."
)
STALLS = counter(
    "evenflow_scheduler_stalls",
    SCHEDULER,
    "Times that a startable task was not started for 2 s, and a full round repaired that. Above 0 is a defect: please report it.",
)
ISOLATIONS = counter(
    "evenflow_scheduler_isolations", SCHEDULER, "Transactions that failed, after which it looked for the run whose fault that was."
)
SET_ASIDE = counter(
    "evenflow_scheduler_set_aside",
    SCHEDULER,
    "Runs and reports that it set aside because handling them failed.",
    "what",
)
DUTY_SECONDS = counter("evenflow_scheduler_duty_seconds", SCHEDULER, "Time that its other duties took.", "duty")
DUTY_FAILURES = counter(
    "evenflow_scheduler_duty_failures",
    SCHEDULER,
    "Times that one of them failed. It waits for longer each time, and the others go on.",
    "duty",
)
DATABASE_FAILURES = counter(
    "evenflow_scheduler_database_failures",
    SCHEDULER,
    "Times that a thread of it lost the database or failed, and began again.",
    "thread",
)

# -- workers -----------------------------------------------------------------------------------------------------------

WORKER_SLOTS = gauge("evenflow_worker_slots", WORKER, "Tries that it runs at once.")
WORKER_TRIES = gauge("evenflow_worker_tries", WORKER, "Tries that it has in hand.")
WORKER_FREE = gauge("evenflow_worker_slots_free", WORKER, "Slots in which a try could start now.")
WORKER_RESUME_FREE = gauge(
    "evenflow_worker_resume_slots_free", WORKER, "Slots in which a try could go on that resumes from waiting, and no other."
)
WORKER_OUTRUN = gauge(
    "evenflow_worker_tries_outrun", WORKER, "Tries that do not end: they fork more quickly than they can be killed."
)
WORKER_OUT_OF_MEMORY = counter(
    "evenflow_worker_tries_out_of_memory", WORKER, "Tries of which the kernel killed processes: they used more than their task may."
)
WORKER_OUT_OF_PROCESSES = counter(
    "evenflow_worker_tries_out_of_processes",
    WORKER,
    "Tries to which the kernel refused a process: they had as many as a try may have.",
)
WORKER_UNACKNOWLEDGED = gauge(
    "evenflow_worker_reports_unacknowledged", WORKER, "Ends of tries that no API server has acknowledged yet."
)
WORKER_LOG_BYTES = gauge("evenflow_worker_log_bytes_held", WORKER, "Bytes of logs that no API server has stored yet.")
WORKER_LOG_LOST = counter(
    "evenflow_worker_log_bytes_lost", WORKER, "Bytes of logs that it dropped, as no API server could store them. Tasks go on."
)

# -- triggerers --------------------------------------------------------------------------------------------------------

TRIGGERER_CAPACITY = gauge("evenflow_triggerer_capacity", TRIGGERER, "Triggers that it runs at once.")
TRIGGERER_TRIGGERS = gauge("evenflow_triggerer_triggers", TRIGGERER, "Triggers that it has in hand.")
TRIGGERER_HOSTS = gauge("evenflow_triggerer_hosts", TRIGGERER, "Processes in which they run.")
TRIGGERER_UNACKNOWLEDGED = gauge(
    "evenflow_triggerer_reports_unacknowledged", TRIGGERER, "Events and failures that no API server has acknowledged yet."
)
TRIGGERS_FIRED = counter("evenflow_triggerer_fired", TRIGGERER, "Triggers that had their event.")
TRIGGERS_FAILED = counter("evenflow_triggerer_failed", TRIGGERER, "Times that a trigger failed, or its process ended.")
TRIGGERS_BLOCKED = counter(
    "evenflow_triggerer_blocked",
    TRIGGERER,
    "Times that a trigger kept the event loop of its process for more than 2 s, so that it got a process of its own.",
)
HOSTS_ENDED = counter("evenflow_triggerer_hosts_ended", TRIGGERER, "Processes of triggers that ended unasked, or had to be killed.")
EVENT_SECONDS = histogram(
    "evenflow_triggerer_event_seconds", TRIGGERER, "Time from the event of a trigger to the acknowledgement of its report."
)

# -- processors --------------------------------------------------------------------------------------------------------

FILES = gauge("evenflow_processor_files", PROCESSOR, "DAG files that it sees.", "bundle")
PARSES = histogram("evenflow_processor_parse_seconds", PROCESSOR, "How long loading a DAG file takes.")
PARSE_FAILURES = counter("evenflow_processor_parse_failures", PROCESSOR, "Times that loading a DAG file failed.")
FILE_SECONDS = gauge(
    "evenflow_processor_file_parse_seconds", PROCESSOR, "How long loading this file took last; the 100 slowest.", "bundle", "file"
)
FILE_TIME = gauge(
    "evenflow_processor_file_parsed_time_seconds", PROCESSOR, "When that was, in seconds since 1970.", "bundle", "file"
)

# -- autoscalers: only the acting one of several reports fleets ------------------------------------------------------------

FLEET_REPLICAS = gauge("evenflow_fleet_replicas", AUTOSCALER, "Workers that a fleet is to have.", "fleet")
FLEET_READY = gauge("evenflow_fleet_slots_ready", AUTOSCALER, "Slots of its workers that take tries.", "fleet")
FLEET_RUNNING = gauge("evenflow_fleet_running", AUTOSCALER, "Tries of its queues that workers have.", "fleet")
FLEET_WAITING = gauge(
    "evenflow_fleet_waiting", AUTOSCALER, "Tries of its queues that wait for a worker. At 20,000 of a queue counting ends.", "fleet"
)
FLEET_OLDEST = gauge(
    "evenflow_fleet_oldest_waiting_seconds", AUTOSCALER, "For how long the first of them has waited for a worker.", "fleet"
)
FLEET_MOVES = counter(
    "evenflow_fleet_moves", AUTOSCALER, "Times that it was made larger, or workers were chosen to go.", "fleet", "direction"
)
FLEET_FAILURES = counter(
    "evenflow_fleet_failures",
    AUTOSCALER,
    "Times that a fleet could not be looked after. It is tried again each second, or after 5 s where its cluster is away.",
    "fleet",
)
DECISION_SECONDS = histogram(
    "evenflow_fleet_decision_seconds",
    AUTOSCALER,
    "How long it takes to look at all that a decision about a fleet needs, and decide.",
)

# -- launchers ---------------------------------------------------------------------------------------------------------

LAUNCHES = counter("evenflow_launches", LAUNCHER, "Tries sent to an executor.", "executor")
LAUNCHES_AGAIN = counter(
    "evenflow_launches_again", LAUNCHER, "Tries to be sent again, for nobody had claimed them and they were lost.", "executor"
)
LAUNCHES_ENDED = counter(
    "evenflow_launches_ended", LAUNCHER, "Tries that ended at their executor before a worker claimed them.", "executor"
)
LAUNCH_FAILURES = counter(
    "evenflow_launch_failures", LAUNCHER, "Times that an executor took nothing. It is tried again.", "executor"
)

POD_TROUBLES = counter(
    "evenflow_pod_troubles",
    LAUNCHER,
    "Pods of tries that were not made, could not run or ended before their try.",
    "executor",
    "cause",
)

# -- API servers -------------------------------------------------------------------------------------------------------

API_REQUESTS = counter("evenflow_api_requests", API, "Requests answered, by part of the API and class of status.", "part", "status")
API_SECONDS = histogram(
    "evenflow_api_request_seconds",
    API,
    "How long requests take; those that wait on purpose (claim, logs) have parts of their own.",
    "part",
)
API_CLAIMS_WAITING = gauge("evenflow_api_claims_waiting", API, "Workers that wait at this server for something to do.")
CLAIM_WAIT = histogram("evenflow_api_claim_wait_seconds", API, "How long tries waited between dispatch and claim.")
API_TRIGGER_CLAIMS_WAITING = gauge("evenflow_api_trigger_claims_waiting", API, "Triggerers that wait at this server for triggers.")
TRIGGER_WAIT = histogram("evenflow_api_trigger_wait_seconds", API, "How long triggers waited for a triggerer.")
POOL_CONNECTIONS = gauge("evenflow_api_database_connections", API, "Connections of its pool.", "state")
POOL_WAITING = gauge("evenflow_api_database_waiting", API, "Requests that wait for a connection.")
POOL_REQUESTS = counter("evenflow_api_database_requests", API, "Times that a connection was asked for.")
POOL_FAILURES = counter("evenflow_api_database_failures", API, "Times that none was to be had.")
POOL_LOST = counter("evenflow_api_database_connections_lost", API, "Connections that died.")
LOG_BYTES_LOST = counter(
    "evenflow_api_log_bytes_lost",
    API,
    "Bytes that are missing before what it has stored of a log: lost, or at another server that has a folder of its own.",
)
TRACE_SPANS = counter("evenflow_api_trace_spans", API, "Spans of traces that the collector took.")
TRACE_FAILURES = counter("evenflow_api_trace_failures", API, "Times that the collector did not answer, or took nothing.")
TRACE_SPANS_REFUSED = counter("evenflow_api_trace_spans_refused", API, "Spans that the collector refused for good.")
TRACES_LOST = counter(
    "evenflow_api_traces_lost", API, "Ends of runs that waited too long for the collector, or of which no trace could be made."
)
LOGS_REFUSED = counter("evenflow_api_logs_refused", API, "Times that it could not write to a log, as the disk was full or failed.")
LOG_DISK_FREE = gauge("evenflow_api_log_disk_free_bytes", API, "Free space where it stores logs.")

METRICS = tuple(_declared)
