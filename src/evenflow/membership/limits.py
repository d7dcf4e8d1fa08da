"""Every limit that the services that run user code share, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

# -- templates ---------------------------------------------------------------------------------------------------------

LOAD_TIMEOUT = 60.0  # of a DAG file and its imports; pandas, pyspark and a slow disk together take some 10 s
FOREIGN_LOAD_TIMEOUT = 280.0  # if an environment's packages load first: Airflow takes 2 to 10 s, and minutes on a busy host
LOADS_AT_ONCE = 2  # loading is one busy core each
TEMPLATE_MEMORY = 512  # MiB of all templates without a child: a small DAG file takes 5, one that imports pandas 60
IDLE_TEMPLATE = 600.0  # a DAG that runs every few minutes stays warm
IDLE_PROCESS = 30.0  # of a process that waits for another try: a fork costs milliseconds, this process some MiB
VALUES_LOOK = 10.0  # between two looks at values that files were loaded with: tries that begin later than this see a change
FAILURE_KEPT = 10.0  # of a load: a burst of tries tries a file that cannot be imported only once
CODE_LOCK = 10.0  # while other processes put code into the cache; a version of many files on a slow disk takes a second
CODE_LOCK_LOOK = 0.05  # between two tries for it
STORED_CODE = 200  # versions in the code cache, the oldest deleted at start; some 100 kB each

# -- logs --------------------------------------------------------------------------------------------------------------

LOG_DELAY = 0.2  # a person sees a line at once, and a chatty task does not cause a request a line
MASK_WAIT = 2.0  # for the rest of a possible secret: programs flush a line at once, and a prompt still shows soon
LOG_EAGER = 64 * 2**10  # unsent bytes that are sent without delay
LOG_HELD = 256 * 2**10  # unsent of one try; above it the pipe is not read, so the task waits for its log
LOG_CHUNK = 256 * 2**10  # of one try in one request
LOG_REQUEST = 4 * 2**20  # of all tries in one request; the API reads 16 MiB
LOG_CHUNKS = 1_000  # tries in one request: each is looked up
LOG_PATIENCE = 60.0  # that a task waits for its log when no API can store it: enough to clean up a disk, and tasks matter more
LOG_SPOOL = 64 * 2**20  # unsent of all tries while no API can store it, then the oldest is dropped; the output of a busy hour
LOG_STREAMS = 10_000  # tries with unsent bytes, or with an unsent count of lost ones; a kB each

# -- claims ------------------------------------------------------------------------------------------------------------

CLAIM_WAIT = 25.0  # below the 30 s that the API grants; proxies commonly cut a silent request after 60
CLAIM_GRACE = 0.2  # an answer under way when a drain begins arrives within a round trip

# -- reports -----------------------------------------------------------------------------------------------------------

REPORTS = 500  # in one request: 20 ms of work for the database
REPORTS_SIZE = 8 * 2**20  # of results, or events, in one request; the API reads 16 MiB
REPORT_FAILURES = 5  # of the API at one report while it takes others; then the report says only that, and its try or trigger fails
REPORT_PAUSE = 1.0  # until such a report is sent again, alone

# -- the end -----------------------------------------------------------------------------------------------------------

LAST_WORDS = 2.0  # for unsent reports and logs at a stop; the control plane works without them
