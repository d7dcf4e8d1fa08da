"""Every limit of the API, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

from evenflow.wire.code import MAX_ARCHIVE_BYTES

# -- bodies ------------------------------------------------------------------------------------------------------------

REST_BODY = 1 * 2**20  # run parameters written by people
EXECUTION_BODY = 16 * 2**20  # a batch of reports with results, or of log chunks; workers split above it
PARSED_BODY = 64 * 2**20  # the specs of one DAG file: 100,000 tasks at some 300 bytes, with room
CODE_BODY = MAX_ARCHIVE_BYTES  # one archive of the code of a DAG file
CODE_VERSIONS = 100  # versions of one archive, to decide if a caller may read it: all DAGs of a file, several times over

# -- tries -------------------------------------------------------------------------------------------------------------

CLAIM_WAIT = 30.0  # proxies on the way commonly cut a silent request after 60
RESEND_AFTER = 2.0  # a claim's answer has arrived by then, or is lost
START_MARKED = 60.0  # from its claim until a try that runs is marked as started: most are over by then
HOST_NAME = 253  # characters, as DNS has it
VERSION_NAME = 100  # characters
LISTED_EPOCHS = 100_000  # triggers of one triggerer, ten times what it has by default; a worker has hundreds of tries

REPORTS = 5_000  # one transaction; at 40 us each about 0.2 s
ERROR_TYPES = 32  # depth of an exception's class hierarchy, with room
REPORT_AGE = 30 * 86_400.0  # a worker that comes back after a longer outage says so through its clock, not through us

XCOM_LIST = 16 * 2**20  # JSON of all results of a mapped task, as one pull returns them
INLET_EVENTS = 1_000  # one answer: the newest
TRIGGER_NAME = 150  # characters of the DAG in the name of a run that it triggered; NAME bounds the whole
STATES_RUNS = 1_000  # runs whose states one question asks for
GARBAGE = 1_000  # objects deleted in one go, some seconds of requests to a remote storage
GARBAGE_AT_ONCE = 16  # of them at the same time: 300 a second where each takes 50 ms
GARBAGE_PAUSE = 30.0  # no request waits for it, and an empty look is one short statement
PROGRESS = 8 * 2**10  # JSON
ONCE_VALUES = 100  # of one task instance: ids of what it made in other systems
ASSET_VALUES = 1_000  # that tasks keep with one asset: how far it is loaded, for each part of it
TRY_RECORD = 256 * 2**10  # JSON of one record of a try about its work; the lineage of a hundred wide tables is the largest
TRY_LINKS = 50  # that one try tells, by names: they stand in a line of a page
RENDERED = 256 * 2**10  # JSON of the template fields of a try; the SDK cuts them well below

AIRFLOW_REQUESTS = 32  # of clients of Airflow's, answered at once, each in a thread that waits for the database
GIVEN_SECRETS = 200  # of a try whose client is elsewhere, kept while it runs; beyond it all that the try says counts as secret
GIVEN_SECRET_CHARS = 128 * 2**10  # of them together
AIRFLOW_REQUEST = 60.0  # for one answer; the client gives up after 5, unless its Airflow says otherwise, and asks again

LINEAGE_PAUSE = 10.0  # between two looks for events to send: people look at lineage minutes later
LINEAGE_EVENTS = 50  # taken at once; each is a request
LINEAGE_TIMEOUT = 10.0  # for one request: the collector stores some KiB
LINEAGE_AGAIN = 900.0  # after a failure or the death of the sender: above what all of these requests may take

TRACES_PAUSE = (
    2.0  # between two looks for runs that have ended: a trace is there soon after its run, and a look is one short statement
)
TRACES_AT_ONCE = 50  # ends of runs taken at once, some seconds of requests where each has its own
TRACES_AGAIN = 600.0  # after the death of an API server that has taken some: above what telling all of them may take
TRACES_AGE = 86_400.0  # since the end of a run that is still told: an outage of a collector over a night
TRACES_WAITING = 100_000  # ends of runs that wait for the collector, 10 MB of the database; the oldest go then
TRACES_BACKOFF = 60.0  # the longest pause after requests that failed, which doubles from a second
TRACE_MOVES = 20_000  # of task instances, read at once: 10 MB; of a single instance these are all that is told
TRACE_SPANS = 500  # of a request, some 500 KB before compression; collectors take 4 MB and more
TRACE_TIMEOUT = 10.0  # for one request, the default of OpenTelemetry's exporters
TRACE_CAUSES = 50  # links of a run to others that changed its assets; a trace viewer shows no more
TRACE_TEXT = 2_000  # characters of an attribute or a reason: names and reasons are shorter

SPARK_UI_PAGE = 16 * 2**20  # bytes of one answer of a Spark UI: a page of stages with thousands of tasks has some MiB
SPARK_UI_ANSWERS = 20.0  # for an answer of a Spark UI: a busy driver draws its page
SPARK_APPLICATIONS = 2**20  # bytes of a Spark UI's list of applications; one application has some hundred

# -- triggers ----------------------------------------------------------------------------------------------------------

TRIGGER_FAILURES = 5  # in a row: two more minutes do not cure such a trigger, and its task has retries of its own
TRIGGER_PAUSE = 2.0  # after the first failure; twice as long after each further one
TRIGGER_LONGEST_PAUSE = 60.0  # a trigger that works again is noticed within a minute
TRIGGER_WORKED = 600.0  # a trigger that ran for this long had worked: its failure starts a new row
UNEVEN = 10  # a smaller surplus above an even share, or one below a tenth of it, is not worth beginning triggers anew
SHARED_OUT = 6.0  # two beats in which a triggerer that gives triggers back takes none: the others have asked by then
TRIGGER_LOST = 10.0  # a claim's answer has arrived by then, or is lost; a triggerer lists its triggers every few seconds

# -- connections and variables -----------------------------------------------------------------------------------------

SECRET_STORE = 4.0  # for one request to a store of secrets; it takes some hundredths
SECRET_WAIT = 10.0  # for its answer, and for a turn before: a new login adds a request. The caller gives up after 30
SECRET_CALLS = 8  # requests to one store at once: a burst of tries that want different secrets waits for turns
SECRET_KEPT = 60.0  # of an answer: a changed secret takes effect within a minute, and a store is asked once a minute
SECRET_MISSED = 10.0  # of "it has none": a secret that was just stored is found sooner
SECRET_FAILED = 2.0  # of "it cannot be asked": calls of the same moment need not wait, too
SECRETS_KNOWN = 10_000  # answers: more than an installation has names; 64 KiB each at most, and mostly some hundred bytes
PATTERNS = 100  # of DAG ids that may use a secret: each is compared whenever the secret is asked for

# -- logs --------------------------------------------------------------------------------------------------------------

LOG_TRY = 256 * 2**20  # more is a program that prints in a loop, and would fill the disk for all others
LOG_PARTS = 1_000  # gaps in one log, each a file: more come from API servers that share no folder and are asked in turn
LOG_GAP_LINE = 4 * 2**10  # bytes of the line about a gap: it quotes 300 characters of a reason
LOG_AGE = 366 * 86_400  # of bytes that were lost, in seconds: a larger age is a writer's mistake
LOG_READ = 1 * 2**20  # one answer
LOG_WAIT = 30.0  # as CLAIM_WAIT
LOG_CHECK = 0.25  # how often a waiting reader looks for what another API process wrote
LOG_STATE_CHECK = 1.0  # how often a waiting reader looks whether the try is over
LOG_OPEN_FILES = 256  # a fourth of the usual limit of a process
LOG_STORAGE = 10.0  # for a request's calls to object storage: its caller gives up after 30, and makes several
LOG_STORAGE_CALLS = 32  # at once to write, and as many to read: 600 a second where each takes 50 ms
LOG_OBJECT = 4 * 2**20  # of a log: a larger object is not merged; LOG_TRY are 64
LOG_LOOSE = 16  # small objects at the end of a log before they become one: reading them takes as many requests
LOG_OBJECTS = 256  # of one log; above it, writing waits for a merge. More than LOG_LOOSE of each of its sizes make
LOG_KNOWN = 2_000  # logs in object storage whose objects are known; a kB each
LOG_QUIET = 30.0  # without news, before a log's objects are merged: its try has ended, or rarely logs
LOG_TIDY = 1.0  # between two looks for objects to merge
LOG_TIDY_TIME = 120.0  # to merge one log, or to delete 1,000 objects: no request waits for it
LOG_TIDY_CALLS = 8  # at once, beside the calls that a request waits for
LOG_OBJECT_CHECK = 1.0  # instead of LOG_CHECK where each look is a paid request
LOG_ERROR = 300  # characters of what object storage says

# -- DAG files ---------------------------------------------------------------------------------------------------------

FILES = 100_000  # of one bundle
FILES_LEASED = 1_000  # in one answer: their rows are one transaction's locks
LEASE = 1_200.0  # of a file: twice the longest parse_timeout, and the delivery of the result
SPECS = 1_000  # DAGs of one file
JUDGED_AT_ONCE = 4  # processes that check authors' data: one that uses all its time must not delay the others
JUDGE_SPECS = 20.0  # for all DAGs of one file: 10,000 tasks take a second, and the processor gives up after 30
JUDGE_PARAMS = 5.0  # for the parameters of one run: they take milliseconds
JUDGE_LOAD = 60.0  # until the first of these processes is ready; it takes some tenths of a second
JUDGE_MEMORY = 2 * 2**30  # of address space: a body of 64 MiB becomes objects that take ten times as much
TRACEBACK = 64 * 2**10  # characters
DIFFED_FILE = 512 * 2**10  # finding the differences of longer texts takes seconds
WARNINGS = 16 * 2**10  # characters, of one file

# -- reading -----------------------------------------------------------------------------------------------------------

OPERATED_COUNTED = (
    100_000  # task instances that are counted before a person confirms: some tenths of a second; beyond it the answer says "more"
)
OPERATED_RUNS = (
    10_000  # runs that one request clears, marks or cancels: a year of hours; their reports are written in one statement
)
STATUS_SERVICES = 500  # more than anyone reads
STATUS_SERVICE_STATES = 100  # objects that are not in full service: more than anyone reads; all of them: GET /service-states
HELD_TASKS = 100  # in flight that one object holds: those that hold most come first
CALLBACKS_SHOWN = 100  # of one run; all of them: those of the DAG evenflow_callbacks
PROBE = 2.0  # seconds that the database has to answer a probe; probes are given up after a few
CALENDAR_RUNS = 20_000  # of one DAG, counted by day in some hundredths of a second: a year of each half hour
METRICS_TIMEOUT = 5.0  # seconds that the database has for them; Prometheus gives a scrape up after 10
PROBES_KEPT = 1.0  # seconds that an answer to probes is kept: a probe needs no token
METRICS_KEPT = 1.0  # seconds that the system's metrics are kept: a scrape needs no token, so it must be cheap
PROGRESS_SHOWN = 100  # running tries of one run
USERS_SHOWN = 3  # of a pool that cannot be deleted: enough to begin with
CACHED_TASKS = 100_000  # of the versions that are kept parsed; about 60 MB when full
CACHED_RUNS = 8_192  # names of runs whose tries push, pull and log
CACHED_ELEMENTS = 1_000_000  # map indexes of lists with gaps over which tasks are mapped; 4 MB when full

# -- tokens ------------------------------------------------------------------------------------------------------------

TRAIL = 5.0  # how often counted events are stored; an API process that is killed loses the counts of this time
REFUSALS_TOLD = 100  # different refusals a minute with an event each; more come from a caller that tries many addresses or tokens
REQUEST_ID = 64  # characters of an X-Request-ID that is taken over
REQUESTS_EACH = 300  # a second, of one token: two hundred open pages of one session ask 220 times a second at most
REQUESTS_BURST = 5.0  # seconds' worth of them that may come at one moment: a page or a script that begins asks for much at once
PACED_TOKENS = 16_384  # whose pace is known; 3 MB when full. A token unused for long is forgotten, and has a full bucket again
EXPORTED_AT_ONCE = 1_000  # events in memory, and in one look at the database, of each export
EXPORTS = 4  # of this API process at once: each is a look at the database again and again, and a SIEM is one
TOKEN_USED = 3600.0  # how often an event says that a token is in use
KEYS_CHECK = 3.0  # how long a revoked token still works if its notification was lost

# -- the web UI --------------------------------------------------------------------------------------------------------

LOGIN_CODE = 600.0  # a code of `evenflow up` or `evenflow ui` is for the person at the terminal; a command makes the next one
LOGIN_FAILURES = 10  # of one address within LOGIN_WINDOW: more are not typing errors
LOGIN_FAILURES_ALL = 100  # of all addresses: an attacker with many addresses gains nothing
LOGIN_FAILURES_NAME = 10  # for one name, from all addresses: 14,400 guesses a day do not find a password of twelve characters
LOGIN_WINDOW = 60.0  # seconds
DEVICE_LOGIN = 600.0  # seconds that a person has to answer a command line that asks to be logged in: RFC 8628 has some minutes
DEVICE_POLL = 5.0  # seconds between two of its questions, as RFC 8628 has it; after an early question it is told to add this
DEVICE_LOGINS_HERE = 50  # that wait for an answer, of one address: many people have one
DEVICE_LOGINS = 1_000  # of all addresses
DEVICE_TOKENS_EACH = 20  # of one user at once, the oldest end: all API servers read the list of all
IDENTITY_LOGIN = 600.0  # seconds from leaving for a provider of identities until the return: a second factor takes a while
REFUSED_SHOWN = 60.0  # seconds in which the login page says why a provider of identities refused a login
IDENTITY_KEPT = 3600.0  # seconds that the provider's description of itself is kept; new keys are fetched at once
IDENTITY_ANSWERS = 10.0  # seconds for one answer of it: a person waits
IDENTITY_BODY = 2**20  # bytes of one answer; keys and claims are some KiB
IDENTITY_CLOCK = 60  # seconds that its clock may be ahead or behind
PASSWORD_MEMORY_KIB = 65_536  # of Argon2id for one password: the second choice of RFC 9106, for hosts with other work to do
PASSWORD_PASSES = 3  # over that memory; with it about 0.1 s
PASSWORD_LANES = 4  # as that choice has it
PASSWORDS_AT_ONCE = 2  # checked by an API process: 128 MiB, and two processors
PASSWORDS_WAITING = 16  # for a check; about a second's worth
SESSIONS_EACH = 50  # of one person or token at once; the oldest ends: all API servers read the list of all sessions
BROWSER_CHARS = 200  # of a browser's description of itself, in the list of sessions

# -- what pages hear while they are open ---------------------------------------------------------------------------------

LIVE_STREAMS = 400  # of one API process, each of an open page; a stream is a connection and some kB
LIVE_STREAMS_EACH = 200  # of one name, with however many tokens and sessions: there is room for others
LIVE_FULL = 5  # seconds after which who has all of these may ask for another one
LIVE_PAUSE = 0.1  # between two looks: moves show within half a second, so more looks are not needed
LIVE_REST = 9  # times as long as the last look took: looks take a tenth of the time of one connection at most
LIVE_FOLLOW = 2.0  # after a notification, in which looks go on: reports are announced before a scheduler decides on them
LIVE_SWEEP = 0.5  # moves without a notification, such as a run that its schedule has begun, show within this time
LIVE_MOVES = 5_000  # that one look reads; beyond it pages read again what they show
LIVE_RUNS = 100  # of one message
LIVE_TASKS = 200  # of one run in one message: above it pages read again what they show
LIVE_QUIET = 2.0  # seconds between two answers to one question of a page, however much moves
LIVE_ASKING = 25  # pages that ask again in a second: the more listen, the longer each is quiet, so they cost no more together
LIVE_AGE = 1_000_000  # transactions: a page that was away for more of them reads everything again
LIVE_KEPT = 16  # messages that wait for a slow reader; beyond them it has to read everything again
LIVE_LOG_TEXT = 256 * 2**10  # bytes of a log in one message: clients read lines of some MiB, and JSON may have six for each
LIVE_LANES = 50  # of those that wait, and of those that would start, in what is told of capacity
LIVE_CAPACITY_PAUSE = 2.0  # between two looks at capacity while something moves
LIVE_CAPACITY_SWEEP = 5.0  # what changes without a notification, such as the slots of a pool, shows within this time
LIVE_BEAT = 15.0  # a silent stream shows that it lives: proxies cut a connection that is silent for a minute

# -- this service ------------------------------------------------------------------------------------------------------

POOL = 6  # connections; further requests wait, and the database does the same work with less contention
CLAIM_POOL = 4  # beside these, for claims alone; their statements are planned once and for indexes, as in the next two pools
REPORT_POOL = 2  # each stores a batch of reports, and later reports are the next batch; if one waits for a lock, one is left
BEAT_POOL = 2  # for beats: no service is given up because claims, reports or other requests wait
PROBE_POOL = 2  # beside these: one for probes, one for scrapes; they need no token and must not delay requests that have one
BACKLOG = 2_048  # connections that wait to be accepted, e.g. when all workers of a fleet come back at once
HEAD = 32 * 2**10  # bytes of a request before its body: a token and a URL have a tenth of it
HEAD_TIME = 10.0  # seconds until it is complete: callers send it in one piece
STALLED = 60.0  # seconds in which a caller takes as good as nothing of an answer that waits for it: then it has gone, or means harm
STALLED_BYTES = 64 * 2**10  # that it takes in this time at least: a kB a second
OTHER_DESCRIPTORS = 400  # open logs, connections to the database, and some room; callers get the other descriptors of the process
LEAST_CONNECTIONS = 100  # callers that are served at once, however few descriptors there are
KEEP_ALIVE = 75  # longer than a worker's pause between requests, so connections are made once
SHUTDOWN = 5  # for requests in hand after a drain
CLAIM_KEY = 64  # characters of the key of a claim: it stands in an index, and in a notification
