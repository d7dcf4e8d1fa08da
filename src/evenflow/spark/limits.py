"""Every limit of a Spark session, each with its reason. Times are in seconds."""

from __future__ import annotations

# -- Java --------------------------------------------------------------------------------------------------------------

OLDEST_JAVA = 17  # what Spark 4 is compiled for
JAVA_ANSWERS = 20.0  # `java -version` takes 0.1 s; a cold disk or a loaded machine takes a few
JVM_BEGINS = 180.0  # until it can be talked to: 2 s on an idle machine, a minute on a crowded one
JVM_REFUSES = 1  # the exit code of a JVM that does not know an option or does not get its memory
JVM_LOOK = 0.05  # between two looks at whether it can
JVM_ENDS = 10.0  # when its session is stopped; it takes 0.2 s
JVM_DEATH_SHOWS = 3.0  # between a broken pipe and the exit of the process at its other end, on a crowded machine
ARCHIVE_WRITTEN = 180.0  # it takes 10 s on an idle machine

# -- a session ---------------------------------------------------------------------------------------------------------

DRIVER_MEMORY = "1g"  # several Spark tasks fit on a laptop; a big job says so in its connection or conf
SHUFFLE_PARTITIONS = 4  # at least: with fewer, one skewed partition keeps all other cores idle
LISTENS = 10.0  # a master or server that takes longer to accept a TCP connection does not work either
RETURNS = 60.0  # how long one that refuses connections is asked again: a restart takes 10 to 30 s

# -- a session on a Spark Connect server ---------------------------------------------------------------------------------

CONNECT_PORT = 15_002  # as Spark has it
CONNECT_BEGINS = 120.0  # until a server says something
OWN_CONNECT_BEGINS = 190.0  # one of Evenflow's own may have to be started first, which may take 180 s
CONNECT_LISTENS = 3.0  # between two looks at whether the server answers, and for one
CONNECT_GONE = 15.0  # how long it may not answer: with the looks noticed within 30 s; a restart within it ends the session
OWN_SERVER_TELLS = 60.0  # what a session took, and its first question finds the program still starting on a crowded machine
MOST_ASKED = 4096  # bytes of such a question, which names a user and a session
MOST_TOLD = 16 * 2**20  # bytes of its answer, with the lineage of 200 queries
MOST_WATCHED = 64  # sessions that are noted: more than a machine has slots
UI_ANSWERS = 30.0  # the Spark UI of another server: a stage of ten thousand tasks takes a second, its first page some more
MOST_UI_QUERIES = 1_000  # as many as it keeps by default
CONNECT_LOOK = 0.2  # between two looks at what was interrupted
PYTHON_ENDS = 5.0  # of a cancelled query; spark.python.task.killTimeout is 2 s, and it took 3.3 s at most
CONNECT_ENDS = 20.0  # after an interrupt: the tasks of a stage are killed in 2 to 4 s

# -- progress ----------------------------------------------------------------------------------------------------------

PROGRESS_POLL = 0.5  # a person sees no difference below; one poll costs the driver 1 ms a stage
FLOWS_SHOWN = 20  # told at once, as of stages
PROGRESS_STAGES = 20  # told at once: a screenful, and well under the 8 KiB that the API takes

# -- reading and writing -------------------------------------------------------------------------------------------------

MOST_QUERIES = 200  # of a session whose lineage is read: each is a text of some KiB and a call of this process
MOST_DATASETS = 50  # read, and written; with what follows an event stays below what the API takes
MOST_COLUMNS = 200  # of a dataset
MOST_STAGED = 100  # folders of killed writes that are looked at before a write: a few calls of storage for each
STAGED_LOOK = 0.2  # between two looks for the folder of a write, until it is marked
MOST_ROOTS = 20  # folders that one relation reads

# -- what executors printed ----------------------------------------------------------------------------------------------

EXECUTORS_SHOWN = 3  # of an application that failed: one cause shows in the first of them
MOST_EXECUTOR_OUTPUT = 16 * 1024  # bytes of each of their files: a stack trace of Java with its causes
WORKER_ANSWERS = 5.0  # the page of a worker of Spark: it answers in milliseconds

# -- an application that is submitted ----------------------------------------------------------------------------------

LOST_AFTER = 25.0  # without a beat: a driver that cannot write it for 15 s has killed its application by then
FROZEN_AFTER = 15.0  # without a beat, of a driver on this host that was asked to end: it is killed; below ENDS_WITHIN
BEGINS = 120.0  # a driver of this host, or one of which no master knows: a Python and a look at a folder, on a loaded machine
RUN_EVERY = 2.0  # between two looks at a folder: some reads of small files
MASTER_EVERY = 10.0  # and at the master, while no driver has come
MASTER_ANSWERS = 30.0  # one request: it answers in milliseconds
MASTER_RETURNS = 60.0  # how long a driver is ordered again of a master that does not answer: one that recovers is back in 20 s
MASTER_AGAIN = 1.0  # between two orders
MASTER_SILENT = 600.0  # how long no master may answer while no driver has come: a restart takes minutes
ENDS_WITHIN = 25.0  # on_kill: below the 30 s that a worker gives it
KEPT_FOR = 30 * 86_400.0  # the seals of a task instance: not needed once its run is over
MOST_REASON = 600  # characters of a reason: a list of runs shows the first hundred
MOST_SAID = 200  # characters of what a server answers, in a reason that says what to type behind it
MOST_OWN_LOG = 256 * 1024  # bytes of what Evenflow's own Connect server has said last: its last words, and those of its successor
MOST_OUTPUT_SHOWN = 64 * 1024  # bytes of a driver's output in the log of the task: earlier output is in its file

# -- what an application may say that it took ------------------------------------------------------------------------------

MOST_CORES = 100_000  # of an application; its product with the next in microseconds fits into a bigint
MOST_WALL = 63_000_000.0  # seconds, two years
MOST_TASKS = 1e12  # seconds of all its tasks together
MOST_BYTES = 2**62  # of each kind, and numbers of stages
