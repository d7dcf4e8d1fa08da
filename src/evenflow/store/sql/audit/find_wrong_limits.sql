-- Limits whose use is not what is held of them: by dispatches, by deferred tasks, by running runs, and by releases that no round
-- has folded yet.
with held as (
    select h.limit_id, case when h.position = 1 then d.pool_slots else 1 end as n
    from dispatch d
    cross join lateral unnest(d.holds) with ordinality as h (limit_id, position)
    union all
    select h.limit_id, case when h.position = 1 and f.pool_slots > 0 then f.pool_slots else 1 end
    from deferral f
    cross join lateral unnest(f.holds) with ordinality as h (limit_id, position)
    union all
    select slot_limit, 1 from dag_run where state = 'running' and slot_limit is not null
    union all
    select limit_id, released from wake
), expected as (
    select limit_id, sum(n) as used from held group by limit_id
)
select concat_ws(' ', l.kind, nullif(l.name, ''), 'of run ' || nullif(l.run_key, 0)) as object, l.used || ' used' as found,
       coalesce(e.used, 0) || ' used' as expected
from concurrency_limit l
left join expected e using (limit_id)
where l.used <> coalesce(e.used, 0)
limit %(most)s
