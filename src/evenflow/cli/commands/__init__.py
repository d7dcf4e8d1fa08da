"""The commands, one module a noun, and their tree."""

from __future__ import annotations

from cyclopts import Group

_RUN = Group("Run", sort_key=1)
_LOOK = Group("Look and steer", sort_key=2)
_OPERATE = Group("Operate", sort_key=3)
_SERVICES = Group("Services, one by one", sort_key=4)

# noun or verb, module:attribute, help, group
COMMANDS = (
    ("up", "up:up", "Start everything on this machine, in this terminal, until Ctrl-C.", _RUN),
    ("run", "run:run", "Run a DAG, or a DAG file, and watch it to its end.", _RUN),
    ("dags", "dags:app", "List, show, pause, unpause and delete DAGs.", _LOOK),
    ("runs", "runs:app", "Trigger, list, show, watch and cancel runs.", _LOOK),
    ("backfill", "backfill:app", "Make the runs of past dates, watch, pause and end that.", _LOOK),
    ("tasks", "tasks:app", "List the tasks of a run, read their logs, clear and mark them.", _LOOK),
    ("spark", "spark:app", "Say what a task on Spark did, stage by stage, and which setting to change.", _LOOK),
    ("lineage", "lineage:lineage", "What a task on Spark read and wrote, and which columns came from which.", _LOOK),
    ("why", "why:why", "Say why a task does not run, who is in its way, and what to do.", _LOOK),
    ("plan", "plan:plan", "Say what would start next, and what blocks the rest.", _LOOK),
    ("drain", "service_states:drain", "Take nothing new on, wait for what is in flight, then pause.", _LOOK),
    ("resume-only", "service_states:resume_only", "Start nothing for the first time; resumes and clean-up go on.", _LOOK),
    ("pause", "service_states:pause", "Start nothing for the first time: in a DAG, pool, queue, worker or at all.", _LOOK),
    ("activate", "service_states:activate", "Take everything on again: a DAG, pool, queue, worker or all.", _LOOK),
    ("pools", "pools:app", "List pools, make, change and delete them.", _LOOK),
    ("sharing", "sharing:app", "Say who shares pools and executors, and whether what waits there ages.", _LOOK),
    ("executors", "executors:app", "List what runs tasks, make, change and delete such; which queues each has.", _LOOK),
    ("connections", "sealed:connections_app", "List, set, test and delete connections.", _LOOK),
    ("variables", "sealed:variables_app", "List, set and delete variables.", _LOOK),
    ("xcoms", "xcoms:app", "List and show what tasks returned and pushed.", _LOOK),
    ("approvals", "approvals:app", "List and show what tasks ask people.", _LOOK),
    ("approve", "approvals:approve", "Answer what a task asks.", _LOOK),
    ("triggers", "triggers:app", "List what deferred tasks wait for.", _LOOK),
    ("assets", "assets:app", "List assets and their events, say that one has changed.", _LOOK),
    ("notifications", "notifications:app", "List, make and delete rules that say what is told to whom.", _LOOK),
    ("quarantine", "quarantine:app", "List what is set aside because handling it failed, have it tried again.", _LOOK),
    ("settings", "settings:app", "List and change the settings that all schedulers share.", _LOOK),
    ("login", "login:login", "Log the command line in as you, by an answer in your browser.", _LOOK),
    ("logout", "login:logout", "End that, here and at the server.", _LOOK),
    ("ui", "ui:ui", "Print the address of the web UI, which logs you in.", _LOOK),
    ("status", "status:status", "What runs, what waits, and whether all services are well.", _LOOK),
    ("events", "events:app", "Who changed what; keep it outside the database, and compare.", _LOOK),
    ("insights", "insights:app", "Export history to Parquet, prove that limits held, and report on it.", _LOOK),
    ("doctor", "doctor:doctor", "Check everything that Evenflow needs, and say how to cure what is wrong.", _OPERATE),
    ("audit", "status:audit", "Recompute every counter of the scheduler and compare.", _OPERATE),
    ("migrate", "migrate:app", "Say which files of Airflow's run here, and rewrite those that can be Evenflow's.", _OPERATE),
    ("db", "db:app", "Migrate, check, start, stop and open the database.", _OPERATE),
    ("secrets", "sealed:secrets_app", "Change the keys that seal connections and variables.", _OPERATE),
    ("users", "users:app", "List users, make, disable them, say what they may.", _OPERATE),
    ("sessions", "users:sessions_app", "List where people are logged in, and log them out.", _OPERATE),
    ("tokens", "tokens:app", "Make tokens for people and services.", _OPERATE),
    ("version", "version:version", "Versions of Evenflow and of what it stands on.", _OPERATE),
    ("scheduler", "services:scheduler", "Decide which task runs when.", _SERVICES),
    ("api", "services:api", "Serve people, tools and the services that run user code.", _SERVICES),
    ("processor", "services:processor", "Read the DAG files of a folder.", _SERVICES),
    ("worker", "services:worker", "Run tasks.", _SERVICES),
    ("triggerer", "services:triggerer", "Run the triggers that deferred tasks wait for.", _SERVICES),
    ("launcher", "services:launcher", "Send tries to executors that do not ask for them.", _SERVICES),
    ("connect-server", "services:connect_server", "Keep a Spark Connect server for tasks of this host.", _SERVICES),
    ("autoscaler", "autoscaler:app", "Make fleets of workers larger and smaller, and say what it does.", _SERVICES),
)

_FLEET = "What the page Fleet shows has commands of its own: evenflow status, evenflow executors list and evenflow autoscaler list."
_WORKERS = "Workers are in evenflow status; evenflow worker starts one."

# Nouns of the web UI and of other schedulers, and what there is instead
INSTEAD = {
    "fleet": _FLEET,
    "fleets": _FLEET,
    "services": "Services are in evenflow status.",
    "workers": _WORKERS,
    "queues": "Queues are in evenflow status; evenflow executors list says whose they are.",
    "capacity": "What the page Capacity shows has commands of its own: evenflow pools list, evenflow plan and evenflow why.",
    "logs": "For the log of a task, type: evenflow tasks logs DAG TASK.",
}
