"""How many workers a fleet has, and which of them go: pure, so that whole weeks are simulated in a second.

Theory of operation
-------------------
A *fleet* is the workers that serve some queues and that somebody can make more or fewer of. What it needs is counted in *slots*: a
try that runs or waits for a worker needs one. A scheduler hands tries over as far as limits let it and knows nothing of workers, so
the tries of a queue are just what would run if there were workers without end (R-AS1). What a limit holds back is no try yet.

A *look* (:class:`~evenflow.core.scaling.sizing.Look`) says what was seen at one moment. An *algorithm* makes of it how many slots
the fleet needs; these over the slots that it has are its *load*. A load above A for B seconds makes the fleet larger, one below X
for Y seconds smaller (R-AS2). It is made as large as what is needed *asks for*, never by a step from where it is, so nothing that
is under way is asked for twice. Three things keep it from swinging:

* the size that is asked for lies between A and X, so a load that stays makes one move;
* smaller is as large as the most that was needed in all of Y asks for, so a load that comes back within Y makes no move at all;
* a look that is missing proves nothing: B and Y begin anew after a gap.

Which workers go is a matter of cost (R-AS5): :mod:`evenflow.core.scaling.choosing`.
"""
