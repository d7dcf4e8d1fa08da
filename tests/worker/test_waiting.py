"""Sensors and producers in real processes: what their exits say."""

from __future__ import annotations

from tests.worker.conftest import StartWorker
from tests.worker.world import World


async def test_a_sensor_gives_its_slot_back(world: World, start_worker: StartWorker) -> None:
    await start_worker()
    epoch = world.task("from evenflow import TaskRescheduled\nraise TaskRescheduled(90)")
    payload = await world.exit_of(epoch)
    assert (payload["outcome"], payload["delay_s"]) == ("rescheduled", 90.0)
    assert "Traceback" not in world.log(epoch)


async def test_the_timeout_counts_from_the_first_look(world: World, start_worker: StartWorker) -> None:
    await start_worker()
    look = """
        from evenflow.sdk.operators.sensors import PythonSensor
        from evenflow.sdk.scope import detached
        with detached():
            sensor = PythonSensor(task_id="t", python_callable=bool, mode="reschedule", poke_interval=30, timeout=60)
        sensor.execute(get_current_context())
    """
    first = world.task(look)
    assert (await world.exit_of(first))["delay_s"] == 30.0
    world.conn.execute("update task_instance set poking_since = now() - interval '50 seconds'")
    run_key = world.one("select run_key from dispatch where epoch = %s", first)
    world.end(first)
    second = world.dispatch(run_key)
    assert 0 < (await world.exit_of(second))["delay_s"] <= 10, "no longer than what is left"
    world.conn.execute("update task_instance set poking_since = now() - interval '70 seconds'")
    world.end(second)
    last = await world.exit_of(world.dispatch(run_key))
    assert last["outcome"] == "failed_for_good"
    assert "its timeout is 60 s" in last["reason"]
    assert last["error_types"][0] == "evenflow.errors.SensorTimeout"


async def test_what_a_producer_says(world: World, start_worker: StartWorker) -> None:
    await start_worker()
    epoch = world.task(
        """
        from evenflow import Asset
        from evenflow.sdk.asset_events import OutletEvents
        events = OutletEvents([Asset("orders")])
        events[Asset("orders")].extra["rows"] = 3
        get_current_context()["outlet_events"] = events
        return 1
        """
    )
    payload = await world.exit_of(epoch)
    assert payload["outcome"] == "success"
    assert payload["produced"] == [{"asset": "orders", "uri": "orders", "extra": {"rows": 3}}]
