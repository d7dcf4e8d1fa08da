-- Asks the schedulers for an operation on each of these runs.
with asked as (
    insert into report (run_key, kind, epoch, payload)
    select run_key, 'operate', 0, %(payload)s::jsonb from unnest(%(run_keys)s::bigint[]) as k (run_key)
)
select pg_notify('inbox', '')
