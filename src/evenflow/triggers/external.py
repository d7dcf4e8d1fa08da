"""Waiting for runs and tasks of other DAGs."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.errors import ApiRefused, ApiUnavailable, BadArgument, LookRefused, LookUnanswered
from evenflow.sdk.operators.other_runs import Awaited
from evenflow.triggers import limits
from evenflow.triggers.polling import Payload, PollingTrigger


class ExternalTaskTrigger(PollingTrigger):
    """Fires when runs of ``dag_id`` with these logical dates, or some of their tasks, are in states that decide.

    ``run_ids`` may name the runs instead of their dates. The states are those of ``ExternalTaskSensor``. The event: ``{"status":
    "success", "skipped" or "failed", "message": which states decided}``.
    """

    def __init__(
        self,
        *,
        dag_id: str,
        logical_dates: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        task_ids: Sequence[str] = (),
        group_id: str | None = None,
        allowed_states: Sequence[str] = ("success",),
        skipped_states: Sequence[str] = (),
        failed_states: Sequence[str] = ("failed",),
        poll_interval: float = limits.EXTERNAL_EVERY,
        patience: float = limits.PATIENCE,
    ) -> None:
        super().__init__(poll_interval, patience)
        if bool(logical_dates) == bool(run_ids):
            raise BadArgument("ExternalTaskTrigger needs logical_dates= or run_ids=, which runs are meant, and not both.")
        self.dag_id, self.logical_dates, self.run_ids = dag_id, list(logical_dates), list(run_ids)
        self.task_ids, self.group_id = list(task_ids), group_id
        self.allowed_states, self.skipped_states = list(allowed_states), list(skipped_states)
        self.failed_states = list(failed_states)
        self._awaited = Awaited(
            dag_id=dag_id,
            logical_dates=tuple(logical_dates),
            run_ids=tuple(run_ids),
            task_ids=tuple(task_ids),
            group_id=group_id,
            allowed=frozenset(allowed_states),
            skipped=frozenset(skipped_states),
            failed=frozenset(failed_states),
        )

    async def look(self) -> Payload | None:
        try:
            answer = await self.ask("states", self._awaited.question())
        except ApiRefused as error:
            raise LookRefused(str(error)) from None
        except ApiUnavailable as error:
            raise LookUnanswered(str(error)) from None
        verdict = self._awaited.judge(answer)
        return None if verdict is None else {"status": verdict.status, "message": verdict.message}
