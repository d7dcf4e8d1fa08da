"""Limits of the control plane: each number with its reason. What happens at a limit is said where it is applied."""

from __future__ import annotations

LEASE_S = 15.0  # a service that has not beaten for so long is lost: five beats, so one slow answer loses nothing
BEAT_S = 3.0
SWEEP_S = 1.0  # the longest that a lost notification can delay anything

MAX_MAP_LENGTH = 100_000  # instances of one mapped task; also what a literal may have
MAX_LOSSES = 3  # dispatches of one task instance that infrastructure may lose before that counts as its own failure
MAX_REASON = 2_000  # characters of a reason: enough for a message, too little for a log

RUNS_PER_TURN = 200  # runs whose reports one transaction applies: bounds its locks
REPORTS_SEEN = 4_000  # of which the runs of one transaction are found: what three other schedulers hold is no obstacle
REPORTS_PER_TURN = 1_000  # about 40 ms of work, so that nothing waits long for the next transaction
CHANGES_PER_TURN = 10  # cancels and operations that one transaction applies: about 10 ms for each hundred task instances of its run
NEW_RUNS_PER_TURN = 100  # runs created in one transaction
NEW_RUNS_OF_DAG = 50  # of which one DAG may have so many, so that several share a transaction
NEW_INSTANCES_PER_TURN = 2_000  # task instances created in one transaction, about 0.1 s of work, but always one whole run
LANES_PER_ROUND = 500  # lanes touched, parkings included, and about as many read; a round that ends here runs again at once
STARTS_PER_ROUND = 1_000  # about 40 ms of work, so that workers begin with the first of a great many while the others start
MOST_HEADS = 32  # lanes read ahead of each queue of open lanes when there are few queues
MOST_PARKED = 16  # and of each queue of parked ones: more only start where as many of one run have just ended
LEAST_HEADS = 2  # and when there are very many
