"""A queue that nobody serves is told at once: in the status, in the metrics, and to who asks why."""

from __future__ import annotations

from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core import metrics
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.wire.messages import Register
from tests.api.server.test_metrics import scrape
from tests.api.world import World

UNSERVED = metrics.DISPATCH_UNSERVED.name


def worker(name: str, queue: str) -> Register:
    return Register(kind="worker", name=name, host="h", pid=1, version="1", detail={"slots": 1, "queues": [queue]})


async def test_a_queue_that_nobody_serves_is_told_at_once(
    client: ExecutionClient, world: World, api_url: str, operator_token: str
) -> None:
    """R-ST1: also when workers live, of other queues; until one of this queue does, or a fleet or an executor is to serve it."""
    spec = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python", queue="gpu"),))
    run = world.run(world.add_dag(spec))
    world.dispatch(run, 1, queue="gpu")
    await client.register(
        Register(kind="worker", name="w", host="h", pid=1, version="1", detail={"slots": 1, "queues": ["default"]})
    )
    key = (UNSERVED, (("queue", "gpu"),))
    async with RestClient(api_url, operator_token) as rest:

        async def told() -> tuple[int, str | None, str | None]:
            (queue,) = (await rest.get_status()).queues
            assert (queue.queue, queue.waiting) == ("gpu", 1)
            return queue.workers, queue.fleet, queue.executor

        assert await told() == (0, None, None)
        assert (await scrape(api_url))[key] == 1
        world.conn.execute("insert into fleet (name, target, queues, changed_by) values ('big', 'native', '{gpu}', 'ada')")
        assert await told() == (0, "big", None)
        world.conn.execute("update fleet set name = 'big; one'")
        (queue,) = (await rest.get_status()).queues
        assert queue.trouble == (
            "The queue gpu has no worker yet: fleet big; one is to have one. See: evenflow autoscaler show 'big; one'"
        )
        world.conn.execute("delete from fleet")
        world.conn.execute("insert into executor (name, kind, queues, changed_by) values ('celery', 'celery', '{gpu}', 'ada')")
        assert await told() == (0, None, "celery")
        world.conn.execute("delete from executor where name = 'celery'")
        await client.register(
            Register(kind="worker", name="w2", host="h", pid=2, version="1", detail={"slots": 1, "queues": ["gpu"]})
        )
        assert await told() == (1, None, None)
