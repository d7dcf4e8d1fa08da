"""Limits of launchers alone, each with its reason. In seconds, unless the comment says otherwise."""

from __future__ import annotations

LOOK_S = 1.0  # between two looks at the executors, and at the tries to send: no notification is needed
BATCH = 200  # tries that are sent at once: some milliseconds of a broker, and a transaction of that size
OVERDUE = 1_000  # unclaimed tries that a look takes: the next ones follow a second later
SEND_S = 30.0  # for sending a batch: an absent broker shows in five
PAUSE_S = 1.0  # until the next attempt when an executor takes nothing; doubled each time
LONGEST_PAUSE_S = 15.0  # tries that wait for a broker to return wait no longer than this
ALONE_S = 15.0  # until a try is sent again that its executor takes no more of for now, while it takes others
CANCELLED_S = 1.0  # for a loop to end when it is cancelled, before it is cancelled again
CONNECTIONS = 8  # of one launcher to the database, at most
