"""Limits of a Spark Connect server that Evenflow owns, each with its reason. In seconds, unless the comment says otherwise."""

from __future__ import annotations

LEAST_MEMORY = 1_536  # MiB: below that the JVM's heap is smaller than what Spark asks for
MEMORY = 3_072  # MiB, of JVM and Python workers together: a laptop has room for it
HEAP = 5 / 8  # of it for the JVM's heap; the rest is for the JVM's other memory, and for Python workers
IDLE = 1_800.0  # without a session: a developer comes back within half an hour
STARTS = 180.0  # a JVM of Spark: 5 s with a class archive on an idle machine, a minute on a crowded one
WARM = 120.0  # the first query of a server: 6 s on an idle machine
LOOK = 1.0  # between two looks at the process, its memory and its sessions
ANSWERS = 3.0  # a thread of the network answers a greeting in milliseconds
FROZEN = 20.0  # without any answer: the longest collection of a heap of this size takes a few seconds
ENDS = 5.0  # from SIGTERM to SIGKILL: it has nothing to save
DIES = 20.0  # from a kill until the process has ended, on a crowded machine
PAUSE = 5.0  # until the next start after a failed one: clients ask again several times a second
CHUNK = 262_144  # bytes that are passed on at once
