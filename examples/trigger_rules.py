"""Tasks that run because, or although, others did not succeed."""

from __future__ import annotations

from evenflow import TaskSkipped, TriggerRule, dag, task


@task
def primary() -> str:
    raise ConnectionError("the primary source is down")


@task
def replica() -> str:
    return "rows of the replica"


@task
def archive(needed: bool) -> str:
    if not needed:
        raise TaskSkipped("nobody asked for the archive")
    return "rows of the archive"


@task(trigger_rule=TriggerRule.ONE_SUCCESS)
def publish(sources: list[str | None]) -> str:
    """Runs as soon as one source has succeeded; what the others returned is None."""
    rows = next(rows for rows in sources if rows)
    print(f"published {rows}")
    return rows


@task(trigger_rule=TriggerRule.ONE_FAILED)
def tell_someone() -> None:
    """Runs as soon as one source has failed."""
    print("a source is down")


@task(trigger_rule=TriggerRule.ALL_DONE)
def clean_up() -> None:
    """Runs when all is over, whatever came of it."""
    print("temporary tables dropped")


@dag(tags=["example"])
def trigger_rules(with_archive: bool = False) -> None:
    sources = [primary(), replica(), archive(with_archive)]
    alarm = tell_someone()
    sources >> alarm
    [publish(sources), alarm] >> clean_up()


trigger_rules()
