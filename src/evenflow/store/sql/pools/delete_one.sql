-- Deletes an unused pool. Its limit stays, because limit classes refer to it; a new pool with this name gets it again, open and
-- without sharing, like any new pool.
with opened as (delete from service_state where kind = 'pool' and name = %(name)s), plain as (
    update sharing s set aging_s = null, share_by = null, weights = '{}', version = s.version + 1
    from concurrency_limit l
    where l.limit_id = s.limit_id and l.run_key = 0 and l.kind = 'pool' and l.name = %(name)s
)
delete from pool where name = %(name)s
