"""Every limit of a worker, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- tries -------------------------------------------------------------------------------------------------------------

TERM_GRACE = 5.0  # from SIGTERM to SIGKILL: enough to clean up, and short for a held slot
START_WITHIN = 300.0  # from the assignment: many cold DAG files load one after the other, and another worker may be quicker
REUSE_TRIES = 100  # in one process if their task allows it: what a try leaves behind unseen cannot grow for ever
REUSE_AGE = 600.0  # of such a process; then it gets no further try
REUSE_MEMORY = 64  # MiB above its first size: a library or two that tries import themselves, not their data
CLEAN_UP_GRACE = 30.0  # instead, once on_kill runs: stopping a job outside takes some requests
CLEAN_UP = 300.0  # of a try that exists only for on_kill: only resumes wait for its slot
OUTRUN_PAUSE = 10.0  # between two spells of 10 s of killing processes that fork more quickly: other tries need processors, too
LOG_STORED = 2.0  # that a deferral waits until its log is stored, so that its trigger's log comes after it
EPOCHS_KNOWN = 600.0  # after a try has ended: a repeated assignment comes a minute later at most; this bounds the list
TRY_PROCESSES = 4_096  # and threads, of one try with a group: many times what libraries start, and few beside the pids of a host
GROUPS_REMOVED = (
    1_000  # of those that a try has made below its group, in one look: some 0.1 s, in which its worker does nothing else
)
FROZEN = 3_600.0  # an outage of an hour loses nothing; a try that is frozen longer only holds memory, and has lost its connections
STARTED_DELAY = 0.1  # "running" shows within 1 s; most short tasks end before and need no report of their start
START_PAUSE = 60.0  # the longest, until a start that the API does not take is sent again; the API waits 600 s for it
HANDED_AT_ONCE = 1_000  # hand-overs that wait to be read: as many as a pool may have places
HANDED_BUSY = 0.05  # until a locked try is asked for again: most transactions are over by then
HANDED_PAUSE = (
    2.0  # that a sender waits with what this worker may not have: its place is busy, so no other worker has the try meanwhile
)

# -- values ------------------------------------------------------------------------------------------------------------

AT_ONCE = 2**20  # bytes of a value that the event loop looks through, some milliseconds; a thread takes larger ones

# -- progress ----------------------------------------------------------------------------------------------------------

PROGRESS_PAUSE = 0.25  # between two reports of one try: people see no difference, and the database has less work
