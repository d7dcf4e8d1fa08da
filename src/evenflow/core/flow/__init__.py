"""How a run continues: what becomes ready, expands, is skipped or ends after something has ended. Decided without I/O.

Theory of operation
-------------------
A :class:`~evenflow.core.flow.state.Flow` holds what is known of some runs and what was decided about them. Its driver moves task
instances as reports say, then runs a rule such as :func:`~evenflow.core.flow.readiness.propagate`. A rule that needs more facts is
a generator: it yields sets of :mod:`~evenflow.core.flow.questions`, and continues when each has its answer. The questions of one
set do not depend on each other: a driver can send them all before it waits for the first answer.

The scheduler answers each question with one statement, whatever the number of runs (:mod:`evenflow.scheduler.answers`).
``dag.test()`` answers from dicts (:mod:`evenflow.sdk.local.flow`). Neither of them decides anything.

Instances of a mapped task exist as soon as it is expanded. An instance gets a row, here an item, only when something happens to it.
Until then it is *virtual*: one state stands for all virtual instances of a task, and moves like any other state.
"""
