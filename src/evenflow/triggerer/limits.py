"""Every limit of a triggerer, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- claims ------------------------------------------------------------------------------------------------------------

CAPACITY = 10_000  # triggers at once: some 100 MB, and a burst of all their events is reported within a second or two
SHARED_OUT = 1_000  # triggers that are given back at once, when others have fewer: the next beat says how many more
CLAIMS_KNOWN = 200_000  # that began here: an answer that comes late, or again, is a minute old at most

# -- hosts -------------------------------------------------------------------------------------------------------------

STARTS = 500  # triggers in one message to a host: 10 ms of its loop
BLOCKED = 2.0  # an event loop that stands still for so long delays the events of thousands
LOOK = 0.5  # how often a host's watcher looks at the loop: two wake-ups a second cost nothing
BLOCKED_FOR_GOOD = 30.0  # a trigger that blocks for so long, in a process of its own, will hardly go on
ALONE = 20  # hosts of one trigger, or a few, that have blocked: processes of some 10 MB each; above it they share
IDLE_HOST = 60.0  # without triggers: to start one anew takes milliseconds while its template is warm
CLEAN_UP = 5.0  # for cleanup() of a trigger: time to close connections
ALIVE = 10.0  # how often a host says that it lives
SILENT = 60.0  # a host that is not heard of for so long hangs in a way that its own watcher cannot see
STACK = 20  # frames of where a trigger blocks, the innermost

# -- questions ---------------------------------------------------------------------------------------------------------

QUESTION = 4 * 2**10  # bytes that each counts, beside its text: a task of this service that waits for an answer
OPEN_QUESTIONS = 64 * 2**20  # of a host, with answers that it has not taken: one of each of 10,000 triggers, and half as much again
ASKED_AT_ONCE = 32  # at the API, one of a trigger: a few milliseconds each, and others need its database, too

# -- logs --------------------------------------------------------------------------------------------------------------

FLUSH = 1.0  # that an event waits for its trigger's last lines to be stored; lines that come later are refused
LOGS_HELD = 8 * 2**20  # of a host, that its triggerer has not read: it is some milliseconds behind, or stands still
LINES = 2**20  # in one message of a host: it is masked on the event loop, in some milliseconds
PRINTED = 2**20  # of a host that belongs to no trigger, in this service's own log: one that prints in a loop would fill the disk
LINE = 64 * 2**10  # of what a host prints that belongs to no trigger, in this service's own log
RESTARTS_TOLD = 100  # triggers of a host that died, up to which each task's log says so

# -- the end -----------------------------------------------------------------------------------------------------------

DRAIN = 10.0  # for triggers to stop and clean up; what has not is stopped by the end of its process
