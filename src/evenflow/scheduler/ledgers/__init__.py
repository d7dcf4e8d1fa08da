"""What one transaction has decided so far, in memory, and how it is written.

Each ledger is about one thing and has the statements that write it. A function takes the ledgers that it may touch, so its types
say what it may change; only functions that may touch all take them together. Where one thing never comes without another, a ledger
contains the other ledger and writes into it by itself: what is sent to workers moves and holds limits, what moves may begin or
call authors' functions, and a run holds a slot from its begin to its end. So a function that takes dispatches may touch moves and
holds, and one that takes moves may offer and leave messages. The flow (:mod:`evenflow.core.flow`) decides into those for moves,
offers and messages.
"""

from __future__ import annotations

from evenflow.core.flow.state import Flow
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.deferrals import Deferrals
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.messages import Messages
from evenflow.scheduler.ledgers.moves import Moves, Offers, RunMoves
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.tasks import Item


class Ledgers:
    """Those of one transaction."""

    __slots__ = (
        "_facts",
        "deferrals",
        "dispatches",
        "flow",
        "holds",
        "mapped",
        "messages",
        "moves",
        "offers",
        "run_moves",
    )

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.messages = Messages()
        self.offers = Offers()
        self.moves = Moves(facts, self.messages, self.offers)
        self.holds = Holds()
        self.dispatches = Dispatches(facts, self.moves, self.holds)
        self.deferrals = Deferrals()
        offered, messages = self.offers.ready, self.messages
        self.flow: Flow[Item] = Flow(
            facts.runs,
            self.moves,
            offered,
            stops=messages.stops,
            decisions=messages.decisions,
            surmise=None if facts.scope.is_partial else self.moves.surmise,  # while a fault is looked for, nothing is surmised
        )
        self.mapped = self.flow.mapped
        self.run_moves = RunMoves(facts, messages, self.holds, self.flow.finished)

    def write_ends(self) -> None:
        """Deletes the deferrals that have ended, and says which tries resume. Comes before new dispatches are written."""
        conn = self._facts.conn
        self.dispatches.write_ends(conn)
        self.deferrals.write_resumes(conn)

    def write(self) -> None:
        """Write everything but lanes and limits, which are the round's."""
        conn = self._facts.conn
        if self.mapped.changed:
            tasks.write_mapped(conn, self.mapped.changed)
        self.moves.write(conn)
        self.deferrals.write(conn)
        self.dispatches.write(conn)
        self.messages.write(conn)
        self.run_moves.write(conn)
