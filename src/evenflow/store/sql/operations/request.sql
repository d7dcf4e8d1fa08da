-- Asks the schedulers for an operation on each of these runs, once. Asking again for what waits already changes nothing.
with asked as (
    insert into report (run_key, kind, epoch, payload)
    select run_key, 'operate', 0, %(payload)s::jsonb from unnest(%(run_keys)s::bigint[]) as k (run_key)
    where not exists (
        select from report r where r.run_key = k.run_key and r.epoch = 0 and r.kind = 'operate' and not r.held
            and r.payload = %(payload)s::jsonb)
)
select pg_notify('inbox', '')
