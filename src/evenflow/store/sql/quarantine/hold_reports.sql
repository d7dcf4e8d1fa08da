-- Reports of runs in quarantine wait from now on; cancels wait only where they are not applied. The caller holds the locks of the
-- runs. The limits of an ended try are released at once, so that no task waits for a run that waits for people; a try that is to be
-- sent again, or has deferred, keeps them. FOR UPDATE: a transaction that deletes or kills the dispatch comes before or after.
with said as (
    update report set held = true
    where run_key = any(%(run_keys)s::bigint[]) and (kind <> 'cancel' or %(cancels)s) and not held
    returning epoch, kind, payload
), late as (
    update timer set held = true where run_key = any(%(run_keys)s::bigint[]) and due_at <= now() and not held
), ended as materialized (
    select epoch, holds, pool_slots
    from dispatch
    where epoch in (select epoch from said where kind = 'exit'
        and coalesce(payload ->> 'outcome', '') not in ('cannot_start', 'lost', 'deferred')) and holds <> '{}'
    for update
), emptied as (
    update dispatch d set holds = '{}', pool_slots = 0 from ended where d.epoch = ended.epoch
)
insert into wake (limit_id, released)
select h.limit_id, sum(case when h.position = 1 then ended.pool_slots else 1 end)::int
from ended
cross join lateral unnest(ended.holds) with ordinality as h (limit_id, position)
group by h.limit_id
