"""Every limit that more than one place knows, each with its reason. The place that applies a limit says what happens at it.

A limit of one service stands in that service's ``limits.py``. Sizes are in bytes, times in seconds, unless the comment says
otherwise.
"""

from __future__ import annotations

# -- services and turns ------------------------------------------------------------------------------------------------

LEASE_S = 15.0  # a service that is silent for this long is lost: five beats, so one slow answer loses nothing
BEAT_S = 3.0  # a fifth of a lease
MARGIN_S = 3.0  # before its lease ends, a worker freezes its tries: that takes milliseconds, the rest is for slow clocks
PULSE_S = 0.5  # how often a scheduler looks at leases
STANDSTILL_S = 3.0  # without a look at leases; then all begin anew. At most MARGIN_S, and several times PULSE_S
API_SILENCE_S = 6.0  # the last API server is gone when it has missed two beats; LEASE_S less this and a beat is left to all others
API_HEARD_S = 5.0  # a turn gives tries to claims that wait at an API server with a beat within this time: one beat may be late
WAITING_WORKERS = 32  # whose claims a turn sees; it starts about as many tries, and does not look at more of a large fleet
STARTS_WITHIN_S = 600.0  # of its claim, or the try's worker hangs: the worker itself gives up after 300 s
ENDING_S = (
    1_500.0  # to start a try and, after its time, to end it, both with on_kill in another process: a worker takes 1,200 s at most
)
HUNG_S = 30.0  # between two looks for workers that hang: little beside the above
HANG_S = 3.5  # a transaction whose process is silent for this long is ended, so that others continue within 5 s (R-HA5)
LONGEST_TURN_S = 120.0  # even if its process lives: an old snapshot keeps dead rows; to cancel a run of 100,000 tasks takes 10 s
SWEEP_S = 1.0  # the longest that a lost notification can delay anything
STAND_BY_S = 0.025  # a scheduler to which another leaves no work waits this long between looks: 40 small statements a second
LONGEST_REST_S = 0.2  # between looks of a standby scheduler while anything waits: a burst is over in seconds
STALL_S = 2.0  # a startable task that waits for this long is a defect, and repaired; two sweeps
OUTRUN_NAMED = 20  # tries that their workers cannot end: enough to begin with
LIMIT_CLASSES_WATCHED = 1_000  # limit classes that the watchdog looks at: about 10 ms each half second; there are tens to hundreds
WATCH_S = 0.5  # between two of its looks
DUTY_PAUSE_S = 60.0  # the longest pause of a duty that keeps failing: soon enough once its cause is gone, and seldom in the log
HOUSEKEEPING_S = 5.0  # between two looks for old rows, when the last found none; nothing waits for it
CLEAN_UP_S = 2.0  # between two looks at what tries that are over have left outside: ending it takes about as long
CLEAN_UPS_AT_ONCE = 100  # calls that one look makes: some ten milliseconds
PLANNING_S = 1.0  # of computing dates in a transaction: the server ends one that is silent for HANG_S
PARTITIONS_AHEAD = 7  # days for which history has its partition: a dump, or an outage of the schedulers, may take a week of them
MOST_COUNTED = 10_000  # rows of a backlog: about 2 ms, and a reader decides nothing else at 20,000
PARTITIONS_LEAST = 2  # days ahead; fewer raise an alarm, two days before any harm
PARTITION_PATIENCE_S = 0.2  # that attaching or dropping one may wait for a lock: meanwhile others wait behind it
PARTITION_LOCKED_S = 2.0  # for it under its locks: less than what ends a turn that waits for them (HANG_S)
PARTITION_RETRY_S = 60.0  # after a miss
RETENTION_SLICE_S = 0.2  # of deleting old runs, one transaction after the other, before other duties have their turn
RETENTION_REST_S = 0.1  # until the next such slice while there is more: a third of the time is left for other work
RUNS_AT_ONCE = 200  # small runs that one transaction deletes: some ten milliseconds
INSTANCES_AT_ONCE = 2_000  # task instances whose runs one transaction deletes: about 0.1 s
VERSIONS_KEPT = 10  # of each DAG, without any run: to compare what changed; versions with runs stay anyway
ANSWER_HOURS = (
    24  # that the answer to a request with an idempotency key is kept: callers ask again within minutes, or the next morning
)
ASSET_VALUE_DAYS = 400  # that a value of an asset stays when no task asks for it: what runs once a year keeps its own
ASSET_EVENTS_WAITING = 1_000  # of one asset for a waiting DAG: its run learns of the newest, and more would never be read
SETTLED_AFTER_S = 120.0  # after the end of a service, twice the longest transaction: whatever claimed for it has ended
STRAYS_AT_ONCE = 20_000  # rows of history that are moved to or from the default partition under a lock: about 0.1 s

RUNS_PER_TURN = 200  # runs whose reports one transaction applies: bounds its locks
REPORTS_SEEN = 4_000  # reports in which a transaction looks for its runs: more than three other schedulers hold
REPORTS_PER_TURN = 1_000  # about 40 ms of work, so that nothing waits long for the next transaction
LOOK_BACK_S = 0.1  # how often a connection reads where its claims begin to look: later claims pass over what was given out since
RUNS_KNOWN = 8_192  # in the memory of each process that gives out tries; most tries belong to runs that had one before
RUN_PARAMS_KNOWN = 4 * 2**10  # bytes of JSON; larger parameters are read again, so that all of them are 32 MB at most
INSTANTS_SEEN = 1_000  # moments of due timers, each of one run, about 5 ms: timers of a run in as many transactions hide no others
TIMERS_PER_TURN = (
    500  # due timers that one transaction applies, shared by their runs: about 80 ms, because those of waiting tasks cost most
)
CHANGES_PER_TURN = 25  # cancels and operations that one transaction applies, about 2 ms each
CHANGED_PER_TURN = 500  # task instances of their runs, about 50 ms of work: one change delays everything else for this long
CHANGE_OVERHEAD = 19  # task instances that each change counts as, beside those of its run: a turn holds 25 changes of one task
SETTLED_PER_TURN = 5_000  # waiting instances of a changed run that one transaction judges: about 50 ms beside a look at the run
NEW_RUNS_PER_TURN = 100  # runs created in one transaction, while no running try could end and have to wait for it
NEW_RUNS_OF_DAG = 50  # of which one DAG may have this many, so that several share a transaction
NEW_RUNS_BESIDE_TRIES = 10  # while tries run, also of one DAG: about 3 ms, so that ends of tries are applied at once
CREATION_LINES = 256  # lines that take turns at creation, each looked at in about 5 us; two DAGs may share one without harm
RUN_WAKES_PER_TURN = 200  # read for queued runs, 0.1 ms; a DAG may have many
DAGS_PER_NEW_RUN = (
    2  # DAGs named by wakes that are looked at for each new run, 15 us each; above 1, so that futile wakes do not pile up
)
NEW_INSTANCES_PER_TURN = 500  # task instances created in one transaction, about 30 ms of work, but always one whole run
LANES_PER_ROUND = 500  # lanes touched, parkings included, and about as many read; a round that ends here runs again at once
STARTS_PER_ROUND = 1_000  # about 40 ms of work, so that workers begin with the first of very many while the others start
MOST_LIMIT_CLASSES = 64  # limit classes with open lanes that a round looks through, about 10 us each; above it, it looks at bases
MOST_USUAL_LIMITS = (
    32  # limits that a transaction reads before it knows which it needs: those of the last round, if they are few enough
)
MOST_HEADS = 32  # lanes read ahead of each queue of open lanes when there are few queues
MOST_PARKED = 16  # and of each queue of parked ones: more of them start only where as many of one run have just ended
LEAST_HEADS = 2  # and when there are very many
MOST_EXEMPT = 1_000  # teardowns, callbacks and resumes that a round looks at in closed limit classes: as many as it may start
FRUITLESS_LEASES = 3  # of a DAG file, without any result: its processors ended or hung, and the next one would, too
SILENCES = 3  # times that the API may take a request and not answer for half a minute: the request may be what silences it
DELETED_AT_ONCE = 10_000  # task instances of a run, with all their rows: some hundred milliseconds; a larger run goes in parts
CLAIM_SLOTS = 1_000  # tries, or triggers, of one claim: their rows are one transaction's locks

# -- one installation --------------------------------------------------------------------------------------------------

MAX_PORT = 65_535  # of TCP
MOST_SLOTS = 1_000  # of one worker: as many as one claim may bring
MOST_IN_HAND = 100_000  # slots, triggers or tries that a service may say it has: ten times what any is made for
MOST_PROCESSES = 64  # workers, triggerers or launchers of one `evenflow up`: one machine has no use for more
MOST_START_S = 3_600  # until a service of `evenflow up` is ready: whatever takes longer hangs
MOST_REFRESH_S = 86_400  # between two looks at a repository: a day

# -- what a DAG may hold -------------------------------------------------------------------------------------------------

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1  # of weights, priorities and slots: columns are of this width
MOST_TRIES_COUNTED = 20_000  # tries that are counted of a queue: as many as 1,000 workers may run at once, and 20 ms
MAX_NAME_CHARS = 250  # of ids, names and keys, as in Airflow: they stand in log paths (255 bytes a name) and in indexes
DEVICE_TOKEN_DAYS = 30  # that a token of `evenflow login` is good, unless another time is given: its user logs in once a month
DEVICE_TOKEN_MOST_DAYS = 90  # as one that `evenflow tokens create` makes for a person
PASSWORD_LEAST, PASSWORD_MOST = 12, 256  # characters: one of twelve cannot be guessed; one above a sentence is a mistake
MAX_FOLDER_CHARS = 100  # of the names of bundles, environments and services: they name folders, and stand in tables and tokens
MAX_URI_CHARS = 1_500  # of an asset, as its name
MAX_PATH_CHARS = 500  # of a class by its module and name: an exception, a trigger, a kind of task
MAX_ASSET_NAME = 1_500  # bytes of UTF-8, because a name may be a URI: it stands in indexes, which hold 2,700, beside a dag_id
MAX_LINK_CHARS = 2_000  # the limit of browsers
MAX_DOC_CHARS = 256 * 1024  # of the documentation of a DAG or task: a small book
MAX_TASKS = 10_000  # that an author writes: a spec of about 2 MB, parsed and compiled in well under a second
MAX_SPEC_TASKS = 100_000  # what the scheduler can follow
MAX_SPEC_EDGES = 200_000  # above it, a node between the two sides expresses the same with m + n edges instead of m * n
MAX_SPEC_GROUPS = 10_000  # as many as an author writes tasks
MAX_SPEC_ASSETS = 10_000  # of a DAG: each is a row
MAX_PARTITION_KEYS = 1_000  # of an asset that is partitioned by keys: a row and a run of a backfill each, listed at once
MAX_GROUP_DEPTH = 50  # groups in groups: an id contains the names of all groups around it, and has 250 characters
MAX_MAP_LENGTH = 100_000  # instances of one mapped task; a literal list is in the memory of each process that loads the DAG
MAX_MAP_PARTS = 10_000  # of everything that the tasks of a DAG map over: each is computed when a task is expanded
MAX_MAP_DEPTH = 20  # zip of concat of ...: a deeper one is not readable
MAX_CRON_CHARS = 1_000  # of one expression: every minute of every hour, written out
MAX_CRONS = 100  # expressions of one schedule: each is searched for the next tick
MAX_DATES = 10_000  # of one schedule: they are all in the spec, and a run every hour of a year fits
FORECAST_RUNS = 100  # of a schedule that is code, computed ahead: an hourly one has four days, and all are read at each of its runs
FORECAST_CHARS = 20_000  # of its JSON: a run is three dates
FORECAST_PASSED = 100_000  # dates that are gone through without catchup: some seconds, and more than two months of minutes
FORECAST_AGAIN_S = 60.0  # until a file that cannot be loaded is loaded once more for the runs of its DAGs
FORECAST_LOW = 50  # left, at which more are asked for: a catch-up begins fewer runs than this while a file is loaded
MAX_INTERVAL_S = 100 * 366 * 86_400.0  # between two runs: a run further away is never made
FIRST_YEAR, LAST_YEAR = 1900, 2999  # of dates: with room for intervals on both sides, in any time zone
MAX_RUN_SECONDS = 366 * 86_400  # of timeouts and deadlines: a run or a try that may take longer needs no timeout
MIN_TIMEOUT_S = 0.001  # the resolution of the timers that enforce it
MAX_WAIT_S = 366 * 86_400.0  # of a sensor, a deferral, or until the next look; for a longer wait a schedule fits better
MAX_FAILED_RUNS = 1_000  # in a row before a DAG is paused: a failed run costs a look at this many runs
MAX_RETRIES = 1_000  # a task that fails more often needs another remedy; try numbers are 16 bits wide
MAX_RETRY_DELAY_S = 86_400.0  # whatever the factor: for a longer delay a schedule fits better
MAX_BACKOFF = 100.0  # the factor from one delay to the next: from a second to a day in four tries
MAX_RETRY_RULES = 100  # written by people; tried one after the other for each failure
MAX_LOSSES = 3  # dispatches of a task instance that infrastructure may lose before it fails, unless its task says otherwise
MIN_TRY_MEMORY = 16 * 2**20  # bytes: what the process of a small task has beyond what it shares with its DAG file
MAX_TRY_MEMORY = 64 * 2**40  # of a try: no host has more
MIN_TRY_CPU, MAX_TRY_CPU = 0.01, 1_024.0  # processors: the kernel counts in milliseconds of each 100; no host has more
MAX_CALLBACKS = 10  # functions for one event: each is work of its own, a row of several tables
MAX_AVERAGED_RUNS = 100  # of a deadline by the average runtime: they are read when a run is made
DEADLINE_RUNS = 100  # the newest of a DAG, of which missed deadlines are counted
MAX_DEADLINES = 20  # of a DAG: each is a timer of every run
MAX_CHOICES = 10  # of a question to people: each is a button
MAX_FORM_FIELDS = 50  # of its form: a larger form is a document, which belongs into storage, with its address in the question
MAX_WHO = 100  # names of people and roles who may answer: a longer list should be a role
NOTIFICATION_RULES = 200  # all of them are compared with each event; a rule may be for many DAGs
MAX_RULE_NAMES = 100  # DAGs or recipients of a rule: for more there are tags, and lists of a mail server
MAX_SERVED_NAMES = 32  # queues or bundles in a fleet's token, which is in the head of every request
TOKEN_MOST_DAYS = 3650  # ten years: one above that is a mistake
MAX_SCOPE_NAMES = (
    100  # tags, bundles, pools and queues of one person: each list is compared with them, and every API server has all
)
MAX_QUESTION_BODY = 10_000  # characters below the question: a page
MAX_PARAMS = 1_000  # of a DAG: a person cannot fill in a larger form
MAX_SCHEMA_BYTES = 64 * 1024  # JSON of the schema of one parameter, written by people
MAX_DEFAULT_BYTES = 256 * 1024  # JSON of the default of one parameter: as of a result in the database
MAX_POD_OVERRIDE = 32 * 1024  # JSON of a task's changes to its pods: written by people, read for each of its tries
MAX_JSON_DEPTH = 32  # of a schema, a default, extras: far above what people write, far below any parser's stack
MAX_KEPT_DEPTH = 128  # of a waiting try's values: types of values take two levels each, and only tries read them
MAX_NAMES = 1_000  # items of each list of names: tags, owners with links, outlets, inlets
MAX_DATA_FILES = 1_000  # of one DAG file, beside its modules: each look at the folder looks at them
MAX_DATA_BYTES = 16 * 1024 * 1024  # of them together: half of the limit of an archive of code, in a row of the database

# -- what a try may report and leave -------------------------------------------------------------------------------------

MAX_MESSAGE_BYTES = 1024 * 1024  # of one message or question: its parts are limited below
MAX_INLINE_XCOM = 256 * 1024  # in the database: a value crosses a socket, HTTP and shared memory; larger ones are stored
MAX_XCOM_BYTES = 32 * 1024 * 1024  # of JSON: a value is in the memory of worker and task at once; write more to storage
STORAGE_S = 120.0  # for a value to or from object storage: 32 MiB take a minute on a slow line
STORAGE_CALLS = 8  # at once, of one process: on a slow network they wait, and each holds a value in memory
MAX_REASON = 2_000  # characters of a reason: enough for a message in a table, too little for a log
MAX_ASSET_EVENTS = 1_000  # of one try, through aliases: each is a row, and another one for each DAG that waits for it
MAX_ASSET_EXTRA_BYTES = 16 * 1024  # of one event, as JSON: it travels in the report of the try, with those of thousands of others
MAX_ASSET_EVENTS_BYTES = 768 * 1024  # of all events of one try, as JSON: they travel in one message
MAX_DEFERRED_BYTES = 64 * 1024  # as JSON: arguments of a trigger, of the method that continues, the event; thousands of them wait
MAX_ONCE_BYTES = 64 * 1024  # as JSON, of a value that is kept over all tries: an id, not a result
MAX_SECRET_BYTES = 64 * 1024  # a private key or a JSON document written by people; larger things belong into files
MOST_VALUES_OF_FILE = 100  # connections and variables that a file asks for while it is loaded: each is a request, and an event
MAX_TEMPLATE_BYTES = 1024 * 1024  # of a file that a template field names: written by people
MAX_LINE_SHOWN = 100  # characters of the wrong line of a template: enough to find it
MAX_FIELD_CHARS = 4_096  # of one rendered field that is shown, as in Airflow
MAX_RENDERED_CHARS = 32_768  # of all fields of a try: they are a row of the database
MAX_VENVS_BYTES = 10 * 2**30  # of the environments of one host; one with pandas is 150 MB, one with torch 5 GB

# -- what REST takes and answers -----------------------------------------------------------------------------------------

PAGE = 1_000  # rows of one answer
QUESTIONS = 200  # of people, in one answer: each is opened and masked, 64 KiB of arguments at most
PAGE_DEFAULT = 100  # what a person reads through
LANES_SHOWN = 1_000  # lanes of one plan
RECENT_RUNS = 30  # of each DAG in a list: a strip of them is as wide as a hand
GRID_RUNS = 100  # runs of a DAG beside each other: a screen shows some forty
INSIGHT_DAYS = 90  # of history in one answer: a quarter of a year
INSIGHT_ROWS = 20  # of each of its lists: the views of the marts have the rest
GRID_TOTAL = 1_000  # runs within reach of scrolling: the list of runs has older ones
MOVES_OF_TRIES = 1_000  # of a task instance, of which its tries are told: a sensor that looks again makes three for each look
MAX_IDEMPOTENCY_KEY_CHARS = 200  # a UUID has 36, and keys are often made of a name and a date
MAX_CURSOR_CHARS = 6_000  # of the next page of a list: it has the name of a file, or two names, in Base64
MAX_DESCRIPTION_CHARS = 1_000  # of a pool, a connection or a variable: it is shown in tables
MAX_FEW_WORDS_CHARS = 50  # of a field that takes one of a few words, such as a kind or a policy: the longest has twenty
MAX_QUEUES = 100  # of one executor or fleet: what needs more of them is several executors or fleets
UNLIMITED_SLOTS = 1_000_000  # of an executor without a number of slots, and the most that one may have: then only pools limit
MAX_CODE_CHARS = 100  # of a code that Evenflow makes for a login: half of it is enough
MAX_USER_CODE_CHARS = 40  # of a code that a person types: it has eight letters, and a person may put anything between them
MAX_TOKEN_CHARS = 4_096  # of a token, or of a code of a provider of identities: both travel in the head of a request
MAX_PROVIDER_WORD_CHARS = 200  # of a word of such a provider: Evenflow makes the states, and RFC 6749 the errors
MAX_PROVIDER_REASON_CHARS = 500  # of its reason: a person reads a sentence or two
MAX_SET_ASIDE_CHARS = 1_000  # of the name of what is set aside: the names of a DAG and of a run, and a slash
NOTE = 1_000  # characters of a run's note, as in Airflow: it is shown in tables
MAX_PARTITIONS_SHOWN = 10_000  # of one asset: a year of hours, as a backfill has
BACKFILL_RUNS = 10_000  # dates of one backfill: a year of hours; their rows are written in one statement
EFFECT_RUNS = 1_000  # of those that a cancel of all would end: what that touches is counted of the first
OUTSIDE_NAMED = 100  # applications and pods that end with runs: more than anyone reads
OPERATED_TASKS = 10_000  # tasks, or map indexes, that one request clears or marks by name
MAX_DRAIN_S = 30 * 86_400  # for a longer wait a pause fits better
FINDINGS = 100  # of each kind that the auditor reports: one bug shows everywhere, and a person reads only the first
