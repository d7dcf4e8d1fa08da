-- Runs that end themselves: their cancels go to the holder of the executor's lock, which is told.
with cancels as (
    insert into report (run_key, kind, epoch, payload)
    select run_key, 'cancel', 0, jsonb_build_object('actor', actor)
    from unnest(%(run_keys)s::bigint[], %(actors)s::text[]) as c (run_key, actor)
)
select pg_notify('inbox', '')
