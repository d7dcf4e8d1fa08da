"""How many workers a fleet has, and which of them go: pure, so that a simulation of weeks takes a second.

Theory of operation
-------------------
A *fleet* is the set of workers that serve some queues and that a scaler can make more or fewer of. Its need is counted in *slots*:
a try that runs or waits for a worker needs one. A scheduler hands tries over as far as limits let it and does not know workers, so
the tries of a queue are just what would run with endless workers (R-AS1). A task that a limit holds back is not a try yet.

A *look* (:class:`~evenflow.core.scaling.sizing.Look`) holds what was seen at one moment. An *algorithm* computes from it how many
slots the fleet needs; these divided by the slots that it has are its *load*. A load above A for B seconds makes the fleet larger,
one below X for Y seconds smaller (R-AS2). The new size follows from the *needed* slots, never from the current size plus a step, so
workers that are on their way are not asked for twice. Three rules keep it from swinging:

* the new size puts the load between A and X, so a constant load causes one move;
* a smaller fleet still covers the highest need within Y, so a load that returns within Y causes no move at all;
* a missing look proves nothing: B and Y begin anew after a gap.

Which workers go is a question of cost (R-AS5): :mod:`evenflow.core.scaling.choosing`.
"""
