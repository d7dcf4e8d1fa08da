"""Every limit of a worker, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- tries -------------------------------------------------------------------------------------------------------------

TERM_GRACE = 5.0  # from SIGTERM to SIGKILL: time to clean up, little enough that a slot is not held for nothing
START_WITHIN = 300.0  # from the assignment: with many cold DAG files they load one after the other, and elsewhere it may be quicker
REUSE_TRIES = 100  # in one process where their task says so: what a try leaves behind unseen does not grow for ever
REUSE_AGE = 600.0  # of such a process; then it takes no further try
REUSE_MEMORY = 64  # MiB that it may have more than at first: a library or two that tries import themselves, not their data
CLEAN_UP_GRACE = 30.0  # instead, once on_kill runs: to stop a job outside takes some requests
CLEAN_UP = 300.0  # of a try that is made for on_kill alone: nobody waits for its slot but resumes
OUTRUN_PAUSE = 10.0  # between two times 10 s of killing what forks more quickly than that: other tries need processors, too
LOG_STORED = 2.0  # how long a deferral waits for its log to be stored, so that what its trigger logs comes after it
EPOCHS_KNOWN = 600.0  # after a try has ended: an assignment that comes again is a minute old at most, however many begin in it
FROZEN = 3_600.0  # an outage of an hour loses nothing; a try that stands for longer only holds memory, and has lost its connections
STORAGE = 120.0  # for a value to or from object storage: 32 MiB take a minute on a slow line
STORAGE_CALLS = 8  # at once: on a network that is slow they wait, and each has a value in memory
STARTED_DELAY = 0.1  # "running" shows within 1 s; most short tasks end before and need no report of their start
START_PAUSE = 60.0  # at most, until a start that the API does not take is sent again; it is awaited for 600 s
HANDED_AT_ONCE = 1_000  # hand-overs that wait to be heard: as many as a pool may have places
HANDED_BUSY = 0.05  # until a try that somebody has locked is asked for again: most transactions are over by then
HANDED_PAUSE = (
    2.0  # who hands over what this worker may not have waits so long: nobody else has it meanwhile for want of a place here
)

# -- values ------------------------------------------------------------------------------------------------------------

AT_ONCE = 2**20  # of a value is looked through on the event loop, some milliseconds; more is a thread's

# -- progress ----------------------------------------------------------------------------------------------------------

PROGRESS_PAUSE = 0.25  # between two of one try: people see no difference, the database does
