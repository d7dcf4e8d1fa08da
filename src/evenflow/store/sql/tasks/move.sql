-- Compare-and-set on (state, epoch), and the last move of each for its history. Every row must be hit: the caller holds the run's
-- lock, so a miss is a bug and rolls back. What is queued moves with its dispatch (tasks/insert_dispatches). The end of a try says
-- when it began better than its start did.
with given as materialized (
    select *
    from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(was_states)s::task_state[], %(was_epochs)s::bigint[],
                %(states)s::task_state[], %(epochs)s::bigint[], %(tries)s::smallint[], %(losses)s::smallint[],
                %(started)s::timestamptz[], %(ended)s::timestamptz[], %(events)s::text[], %(details)s::text[])
         as c (run_key, task_index, map_index, was_state, was_epoch, state, epoch, try_number, losses, started_at, ended_at, event,
             detail)
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select run_key, task_index, map_index, epoch, try_number, event, state, detail::jsonb from given where event is not null
), moved as (
    update task_instance t
    set state = c.state, epoch = c.epoch, try_number = c.try_number, losses = t.losses + c.losses,
        started_at = coalesce(case when c.ended_at is not null then c.started_at end, t.started_at, c.started_at),
        ended_at = coalesce(c.ended_at, case when c.was_state = 'deferred' then now() end, t.ended_at)
    from given c
    where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index
      and t.state = c.was_state and t.epoch = c.was_epoch
    returning 1
)
select expect_rows(count(*), %(expected)s, 'Moving task instances') from moved
