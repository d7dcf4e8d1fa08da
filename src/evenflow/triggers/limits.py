"""Every limit of the built-in triggers, each with its reason. Times are in seconds."""

from __future__ import annotations

# -- looking again and again -------------------------------------------------------------------------------------------

JITTER = 0.1  # of a pause, more or less: triggers that began at one moment are spread over their interval within ten looks
PATIENCE = 600.0  # so long nobody may answer before the trigger gives up: a restart or an upgrade of the other side takes minutes
LONGEST_BACKOFF = 60.0  # between two looks at what does not answer: seen within a minute when it is back

# -- HTTP --------------------------------------------------------------------------------------------------------------

REQUESTS_AT_ONCE = 100  # of one process: each is a socket, and ten thousand triggers may begin at one moment
REQUESTS_TO_ONE = 20  # server: one that is dead keeps each waiting for its whole timeout, and must not keep those to others
CONNECTS_WITHIN = 10.0  # a server that takes longer to accept a connection does not work either
ANSWERS_WITHIN = 30.0  # one look: a status is told in milliseconds
MOST_BYTES = 1024 * 1024  # of an answer: a status, not data; it is parsed on the event loop, in at most 10 ms
MOST_SHOWN = 200  # characters of an answer in a message: enough to know it by

# -- blocking clients --------------------------------------------------------------------------------------------------

THREADS = 8  # of one process for files, and as many for databases: there a look takes 1 ms, so thousands a second
THREADS_FOR_ONE = 2  # connection to a database: one that is dead keeps a look waiting, and must not keep those at others
STATEMENT_WITHIN = 30.0  # of one SQL look: it holds a thread
MOST_COLUMNS = 100  # of a row that an event carries
MOST_CELL_CHARS = 500  # of each of its texts: with all columns 50,000, below the 64 KiB of an event

# -- how often ---------------------------------------------------------------------------------------------------------

FILE_EVERY = 5.0  # a look costs 0.1 ms
PROCESS_EVERY = 2.0  # a look costs 0.05 ms
EXTERNAL_EVERY = 30.0  # a question to the API and the database: ten thousand that wait ask 330 times a second
POD_EVERY = 10.0  # a request to the API server of the cluster, answered from its cache
SPARK_EVERY = 10.0  # a request to the master or the driver
HTTP_EVERY = 30.0  # somebody else's server
SQL_EVERY = 30.0  # a connection to somebody else's database
GONE_LOOKS = 3  # times in a row that something must be seen to be gone without its result: that may show a moment later
