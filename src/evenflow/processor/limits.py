"""Every limit of a processor, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

ASK = 2.0  # until it is asked whether files are to be read once more though none has changed: a pool was made, a setting changed
RESCAN = 10.0  # what the kernel's notifications missed (network file systems, swapped links) shows after this
PARSERS = 4  # files at once: one that hangs for its whole time must not hold up the others

PARSER_SILENT = 300.0  # beside twice the timeout of a file: a parser that has not begun anything for so long hangs
PARSE_TIMEOUT = 30.0  # unless `parse_timeout` says otherwise: a file that loads longer does work that belongs into a task
END_GRACE = 10.0  # until the end of a process that was killed shows; it takes milliseconds
ERROR_KEPT = 48 * 2**10  # characters of what a process says, the end: masking looks at each, and the API keeps 64 KiB
WARNING_KEPT = 2_000  # characters of one warning
ABORT_GRACE = 1.0  # for the process to print where it is, before it is killed
LEASED_AT_ONCE = PARSERS  # files: one request for several, and no more than are begun soon
INLINE_CODE = 256 * 2**10  # an archive up to here goes along with its DAGs; sending it when it is known costs less than asking
DELIVERY = 30.0  # part of a lease, beside the timeouts of the file and of the one before it; an API that restarts needs less

MEMORY_MIB = 1024  # of address space, unless `parse_memory` says otherwise; pandas and pyspark together take about a third
OUTPUT = 64 * 2**20  # what a file may print while it is loaded: more is a loop
OUTPUT_KEPT = 32 * 2**10  # of it, the end, which tells why it failed; half of what the API keeps of an error
WARNINGS = 100  # of one file
FILES_MEASURED = 100  # files whose time to load stands in the metrics by name, the slowest: each is a series for ever

GIT_TIMEOUT = 120.0  # one call of git: a shallow fetch of a large repository over a slow line
OLD_TREE = 600.0  # a commit's files are kept after the next has come: whatever is being loaded from them has ended long before
