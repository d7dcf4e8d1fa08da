"""Every limit on what an author may write, each with its reason."""

from __future__ import annotations

MAX_ID_LENGTH = 250  # as in Airflow; ids stand in log paths (255 bytes a name) and in indexes
MAX_DISPLAY_NAME = 250  # characters, as an id: both stand in one column
MAX_TASKS = 10_000  # a spec of about 2 MB, parsed and compiled in well under a second
MAX_EXPANSION = 100_000  # instances of a task mapped over literals: the list is in the memory of each process that loads the DAG
MAX_RUN_SECONDS = 366 * 24 * 3600  # of dagrun_timeout: a run that may take longer needs none
MAX_FAILED_RUNS = 1_000  # in a row before a DAG is paused: so many runs are looked at when one fails
MAX_RETRIES = 1_000  # try numbers are 16 bits wide
MAX_INLINE_XCOM = 256 * 1024  # in the database: a value crosses a socket, HTTP and shared memory; larger ones are stored
MAX_RETRY_RULES = 100  # written by people; tried one after the other for each failure
MAX_XCOM_BYTES = 32 * 1024 * 1024  # of JSON: a value is in the memory of worker and task at once; write more to storage
MAX_TEMPLATE_BYTES = 1024 * 1024  # of a file that a template field names: written by people
MAX_LINE_SHOWN = 100  # characters of the line of a template that is wrong: to find it by
MAX_DATA_FILES = 1_000  # of one DAG file, beside its modules: they are looked at with each look at the folder
MAX_DATA_BYTES = 16 * 1024 * 1024  # of them together: half of what an archive of code may have, in a row of the database
MAX_FIELD_CHARS = 4_096  # of one rendered field that people are shown, as in Airflow
MAX_RENDERED_CHARS = 32_768  # of all fields of a try: they are a row of the database
MAX_CALLBACKS = 10  # functions for one event: each is work of its own, a row of several tables
MAX_DEADLINES = 20  # of a DAG: each is a timer of every run
MAX_VENVS_BYTES = 10 * 2**30  # of the environments of one host; one with pandas is 150 MB, one with torch 5 GB
MAX_REASON_CHARS = 2_000  # a reason is read by people, in tables
MAX_ASSET_NAME = 1_500  # bytes of UTF-8, and in Airflow characters: a name may be a URI
MAX_ASSET_EVENTS = 1_000  # of one try, through aliases: each is a row, and one for each DAG that waits for it
MAX_ASSET_EXTRA_BYTES = 16 * 1024  # of one event, as JSON: it travels in the report of the try, with those of thousands of others
MAX_ASSET_EVENTS_BYTES = 768 * 1024  # of all events of one try, as JSON: they travel in one message of at most 1 MiB
MAX_DEFERRED_BYTES = 64 * 1024  # as JSON: arguments of a trigger, or of the method that goes on; they travel in reports and claims
MAX_ONCE_NAME = 250  # characters, as an id
