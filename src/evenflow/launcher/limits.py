"""Limits that only launchers know, each with its reason. In seconds, unless the comment says else."""

from __future__ import annotations

LOOK_S = 1.0  # between two looks at which executors there are, and at what is to be sent: nobody has to be told
BATCH = 200  # tries that are sent at once: some milliseconds of a broker, and a transaction of that size
OVERDUE = 1_000  # tries a look that nobody has claimed: the others are looked at a second later
SEND_S = 30.0  # that sending a batch may take: a broker that is away says so in five
PAUSE_S = 1.0  # until it is tried again when an executor takes nothing; doubled each time
LONGEST_PAUSE_S = 15.0  # what waited for a broker to come back waits no longer than this
CONNECTIONS = 8  # of one launcher with the database, at most
