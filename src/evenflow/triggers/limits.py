"""Every limit of the built-in triggers, each with its reason. Times are in seconds."""

from __future__ import annotations

# -- looking again and again -------------------------------------------------------------------------------------------

JITTER = 0.1  # of a pause, more or less: triggers that began at one moment spread over their interval within ten looks
PATIENCE = 600.0  # without any answer before the trigger gives up: a restart or an upgrade of the other side takes minutes
LONGEST_BACKOFF = 60.0  # between two looks at a silent service: its return is noticed within a minute

# -- HTTP --------------------------------------------------------------------------------------------------------------

REQUESTS_AT_ONCE = 100  # of one process: each is a socket, and ten thousand triggers may begin at one moment
REQUESTS_TO_ONE = 20  # server: a dead one keeps each waiting for its whole timeout, and must not delay requests to others
CONNECTS_WITHIN = 10.0  # a server that takes longer to accept a connection does not work either
ANSWERS_WITHIN = 30.0  # one look: a status takes milliseconds
MOST_BYTES = 1024 * 1024  # of an answer: a status, not data; it is parsed on the event loop, in at most 10 ms
MOST_SHOWN = 200  # characters of an answer in a message: enough to recognise it

# -- blocking clients --------------------------------------------------------------------------------------------------

THREADS = 8  # of one process for files, and as many for databases: there a look takes 1 ms, so thousands a second
THREADS_FOR_ONE = 2  # for one database connection: a dead one keeps a look waiting, and must not delay looks at others
STATEMENT_WITHIN = 30.0  # of one SQL look: it holds a thread
MOST_COLUMNS = 100  # of a row that an event carries
MOST_CELL_CHARS = 500  # of each of its texts: with all columns 50,000, below the 64 KiB of an event

# -- how often ---------------------------------------------------------------------------------------------------------

FILE_EVERY = 5.0  # a look costs 0.1 ms
PROCESS_EVERY = 2.0  # a look costs 0.05 ms
EXTERNAL_EVERY = 30.0  # a question to the API and the database: ten thousand waiting tasks ask 330 times a second
POD_EVERY = 10.0  # a request to the API server of the cluster, answered from its cache
POD_LOG_EVERY = 5.0  # of a task's own pod: as POD_EVERY, and with a request for its log, which its node answers
POD_CREATE_EVERY = 1.0  # while an API server is silent, and the task's process waits
POD_CREATE_PATIENCE = 60.0  # a restart of the API server; for a longer outage there are retries
POD_END_EVERY = 0.5  # most pods end within two seconds of the request, and a process waits for it
POD_END_PATIENCE = 6 * 3600.0  # without any answer to deletes: the pod must not be left, and waiting costs nothing
SPARK_EVERY = 10.0  # a request to the master or the driver
HTTP_EVERY = 30.0  # a server of another owner
SQL_EVERY = 30.0  # a connection to a database of another owner
GONE_LOOKS = 3  # looks in a row that find something gone without its result: the result may show a moment later

# -- pods of tasks -----------------------------------------------------------------------------------------------------

POD_LOG_AT_ONCE = 128 * 1024  # bytes of a pod's log between two looks: 25 kB a second, as much as a person reads
POD_LOG_MOST = 1024 * 1024 - 1  # of one second of it: as much as an answer may have
POD_LOG_LOOKS_AT_END = 32  # so that the last 4 MiB of output are read
POD_LAST_LINES = 5  # of a log, in the reason of a failure: an exception and its place
POD_LAST_CHARS = 200  # of each
POD_RESULT = 1024 * 1024 - 1  # bytes of a result: as much as an answer may have
POD_RESULT_IN_EVENT = 32 * 1024  # of one that the event carries, which has 64 KiB: half of them, for JSON escapes
POD_RESULT_WITHIN = 60.0  # of the end of the work: the side-car is told to end by then
POD_MESSAGE = 1_000  # characters of an API server's message: it names each wrong field
