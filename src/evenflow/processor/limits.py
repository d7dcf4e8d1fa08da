"""Every limit of a processor, each with its reason. Sizes are bytes, times seconds."""

from __future__ import annotations

RESCAN = 10.0  # what the kernel's notifications missed (network file systems, swapped links) shows after this
PARSERS = 4  # files at once: one that hangs for its whole time must not hold up the others

PARSE_TIMEOUT = 30.0  # a file that loads longer does work at its top level that belongs into a task
ABORT_GRACE = 1.0  # for the process to print where it is, before it is killed
FILE_LEASE = 60.0  # a file that another processor leased is free again when that one must have died: timeout and delivery

MEMORY = 1 * 2**30  # of address space; a DAG file that imports pandas and pyspark takes about a third
OUTPUT_KEPT = 64 * 2**10  # of what a file prints while it is loaded: the end, which tells why it failed
