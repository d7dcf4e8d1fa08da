"""Limits that only autoscalers know, each with its reason. In seconds, unless the comment says else."""

from __future__ import annotations

from evenflow.core.limits import LEASE_S

LOOP_S = 1.0  # between two looks at all fleets; with a thousand workers one takes a tenth of it
FOLLOW_S = 0.25  # between two looks while a target is about to do what it was told
FOLLOWED_S = 5.0  # how long it looks that often: pods that run nothing have ended by then
HURRY_S = 0.1  # at the earliest, when something comes that no worker is there for (R-AS7)
RECORD_S = 5.0  # between two looks that are kept for plots, unless something is decided
KEPT_S = 7 * 86_400.0  # for which looks and plans are kept: a week of a fleet is 120,000 rows
FORGET_S = 600.0  # between two times that older ones are deleted
FENCE_S = 2 * LEASE_S  # how long a fence lasts: the next autoscaler can renew it; without one, its worker soon takes tries again
LEAVING_S = 600.0  # the fence of a worker that was told to end; a host that has not ended it by then will not
VERIFY_S = 900.0  # until it is known which workers have gone: a worker may take its drain timeout to end
PLANS = 50  # of a fleet that are open at once: each costs some statements a loop
AWAY_S = 5.0  # until a target that could not be reached is tried again: the other fleets do not wait for it each second
CLUSTER_S = 3.0  # for which a request to a cluster is sent again: all of a loop has to fit into a lease
CLUSTER_ANSWER_S = (
    5.0  # for its answer: a list of 500 pods takes a second; a cluster that takes requests and is silent costs a third of a lease
)
CONFLICTS = 5  # how often a number is written again that another client has changed in the same instant
GRAPHS_AT_ONCE = 20  # that a forecast learns in one look: most take a millisecond, the largest a third of a second
MOST_TASKS_KNOWN = 200_000  # in graphs that are kept and are of nothing that runs: some 200 MB
HABITS_S = 300.0  # until it is looked again how long a task takes
HABITS_AT_ONCE = 100  # tasks of which that is read in one look: some 20 ms
HABIT_RUNS = 20  # before it: enough for a median, and some sixty looks into an index
HABIT_INSTANCES = 20  # of a mapped task in each of them
MOST_HABITS = 20_000  # that are kept: of as many tasks as may run
MARK_ALONGSIDE = 20  # pods whose costs are written at once
NAMED = 20  # workers that a plan names of those that were not chosen: the rest is counted, as a fleet may have a thousand
