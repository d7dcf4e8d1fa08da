"""Every limit of a triggerer, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- claims ------------------------------------------------------------------------------------------------------------

CAPACITY = 10_000  # triggers at once: some 100 MB, and a burst of all their events is reported within two seconds
SHARED_OUT = 1_000  # triggers that are given back at once, when others have fewer: the next beat says how many more
CLAIMS_KNOWN = 200_000  # claims that began here: a late or repeated answer is a minute old at most

# -- hosts -------------------------------------------------------------------------------------------------------------

STARTS = 500  # triggers in one message to a host: 10 ms of its loop
BLOCKED = 2.0  # an event loop that stands still for this long delays the events of thousands
LOOK = 0.5  # how often a host's watcher looks at the loop: two wake-ups a second cost nothing
BLOCKED_FOR_GOOD = 30.0  # a trigger that blocks its own process for this long will hardly continue
ALONE = 20  # hosts with one trigger or a few, after a block: processes of some 10 MB each; above it they share
IDLE_HOST = 60.0  # without triggers: starting a new one takes milliseconds while its template is warm
CLEAN_UP = 5.0  # for cleanup() of a trigger: time to close connections
ALIVE = 10.0  # how often a host says that it is alive
SILENT = 60.0  # a host that is silent for this long hangs in a way that its own watcher cannot see
STACK = 20  # frames of the place where a trigger blocks, the innermost

# -- questions ---------------------------------------------------------------------------------------------------------

QUESTION = 4 * 2**10  # bytes that each question counts, beside its text: for a waiting task of this service
OPEN_QUESTIONS = 64 * 2**20  # of a host, with unread answers: one of each of 10,000 triggers, and half as much again
ASKED_AT_ONCE = 32  # at the API, one of each trigger: a few milliseconds each, and others need its database, too

# -- logs --------------------------------------------------------------------------------------------------------------

FLUSH = 1.0  # that an event waits until its trigger's last lines are stored; later lines are refused
LOGS_HELD = 8 * 2**20  # of a host, unread by its triggerer, which is some milliseconds behind, or stands still
LINES = 2**20  # in one message of a host: masking it on the event loop takes some milliseconds
PRINTED = 2**20  # of a host for no trigger, in this service's own log: an endless print would fill the disk
LINE = 64 * 2**10  # of a line that a host prints for no trigger, in this service's own log
RESTARTS_TOLD = 100  # triggers of a dead host, up to which each task's log mentions the restart

# -- the end -----------------------------------------------------------------------------------------------------------

DRAIN = 10.0  # for triggers to stop and clean up; the others stop when their process is ended
