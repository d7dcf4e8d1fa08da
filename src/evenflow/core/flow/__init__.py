"""How a run goes on: what becomes ready, expands, is skipped or ends when something has ended. Decided without I/O.

Theory of operation
-------------------
A :class:`~evenflow.core.flow.state.Flow` holds what is known of some runs and what was decided about them. Whoever drives it moves
task instances as the world reports, then runs a rule such as :func:`~evenflow.core.flow.readiness.propagate`. A rule that has to
know more is a generator: it yields sets of :mod:`~evenflow.core.flow.questions`, and goes on when each has its answer. The
questions of one set do not depend on each other: a driver can send them all before it waits for the first answer.

The scheduler answers with statements, one for each question, whatever the number of runs (:mod:`evenflow.scheduler.answers`).
``dag.test()`` answers from dicts (:mod:`evenflow.sdk.local.flow`). Neither decides anything.

Instances of a mapped task exist as soon as it is expanded, but get a row, here an item of their own, only when something happens to
one of them. Until then they are *virtual*: one state stands for all of them, and is moved as any other state.
"""
