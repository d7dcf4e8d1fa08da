"""Every limit of a processor, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

ASK = 2.0  # between two requests for files that should be read again although unchanged: a pool was made, a setting changed
RESCAN = 10.0  # changes that the kernel's notifications missed (network file systems, swapped links) show after this
PARSERS = 4  # files at once: one that hangs for its whole time must not delay the others

PARSER_SILENT = 300.0  # beside twice the timeout of a file: a parser that begins nothing for this long hangs
PARSE_TIMEOUT = 30.0  # unless `parse_timeout` says otherwise: a file that loads longer does work that belongs into a task
END_GRACE = 10.0  # until the end of a killed process shows; it takes milliseconds
ERROR_KEPT = 48 * 2**10  # characters of a process's output, the end: masking looks at each, and the API keeps 64 KiB
WARNING_KEPT = 2_000  # characters of one warning
ABORT_GRACE = 1.0  # for the process to print where it is, before it is killed
LEASED_AT_ONCE = PARSERS  # files: one request for several, and no more than begin soon
INLINE_CODE = 256 * 2**10  # a smaller archive goes along with its DAGs; sending a known one costs less than asking
DELIVERY = 30.0  # part of a lease, beside the timeouts of the file and of the one before it; a restart of the API takes less

MEMORY_MIB = 1024  # of address space, unless `parse_memory` says otherwise; pandas and pyspark together take about a third
OUTPUT = 64 * 2**20  # of output during a load: more is a loop
OUTPUT_KEPT = 32 * 2**10  # of it, the end, which tells why the load failed; half of what the API keeps of an error
WARNINGS = 100  # of one file
FILES_MEASURED = 100  # files with a metric of their load time by name, the slowest: each is a series for ever

PLUGINS = 300.0  # between two looks at the plugins of an environment, each of which imports all of them in a process of its own

GIT_TIMEOUT = 120.0  # one call of git: a shallow fetch of a large repository over a slow line
OLD_TREE = 600.0  # after which a replaced commit's files are deleted: loads from them have ended long before
