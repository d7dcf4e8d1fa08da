"""Every limit of a worker, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- claims ------------------------------------------------------------------------------------------------------------

CLAIM_WAIT = 25.0  # below the 30 s that the API grants; proxies commonly cut a silent request after 60
CLAIM_GRACE = 0.2  # an answer under way when a drain begins arrives within a round trip

# -- tries -------------------------------------------------------------------------------------------------------------

TERM_GRACE = 5.0  # from SIGTERM to SIGKILL: time to clean up, little enough that a slot is not held for nothing
START_WITHIN = 300.0  # from the assignment: with many cold DAG files they load one after the other, and elsewhere it may be quicker
EPOCHS_KNOWN = 10_000  # that began here: an assignment that comes again is a minute old at most
FROZEN = 3_600.0  # an outage of an hour loses nothing; a try that stands for longer only holds memory, and has lost its connections
STARTED_DELAY = 0.1  # "running" shows within 1 s; most short tasks end before and need no report of their start

# -- templates ---------------------------------------------------------------------------------------------------------

LOAD_TIMEOUT = 60.0  # of a DAG file and its imports; pandas, pyspark and a slow disk together take some 10 s
LOADS_AT_ONCE = 2  # loading is one busy core each
IDLE_TEMPLATES = 8  # with no child: 20 to 200 MB each, by what the DAG file imports
IDLE_TEMPLATE = 600.0  # a DAG that runs every few minutes stays warm
FAILURE_KEPT = 10.0  # a burst of tries meets a file that cannot be imported once, not each for itself
STORED_CODE = 200  # versions in the code cache, the oldest deleted at start; some 100 kB each

# -- reports -----------------------------------------------------------------------------------------------------------

REPORTS = 500  # in one request: 20 ms of work for the database
REPORT_FAILURES = 5  # of the API at one exit while it takes others; then the exit says only that, and its try fails
REPORT_PAUSE = 1.0  # until such an exit is sent again, alone
REPORTS_SIZE = 8 * 2**20  # of results in one request; the API reads 16 MiB

# -- logs --------------------------------------------------------------------------------------------------------------

LOG_DELAY = 0.2  # a line shows at once to a person, and a chatty task is not a request a line
MASK_WAIT = 2.0  # for the rest of what may be a secret: programs flush a line at once, and a prompt still shows soon
LOG_EAGER = 64 * 2**10  # so much is sent without delay
LOG_HELD = 256 * 2**10  # unsent of one try; above it the pipe is not read, so the task waits for its log
LOG_CHUNK = 256 * 2**10  # of one try in one request
LOG_REQUEST = 4 * 2**20  # of all tries in one request; the API reads 16 MiB

# -- progress ----------------------------------------------------------------------------------------------------------

PROGRESS_PAUSE = 0.25  # between two of one try: people see no difference, the database does

# -- the end -----------------------------------------------------------------------------------------------------------

LAST_WORDS = 2.0  # for what is still unsent at a stop; the control plane does without it
