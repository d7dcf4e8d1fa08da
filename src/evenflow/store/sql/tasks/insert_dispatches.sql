-- Tries for workers to claim, and the moves that made them, with the task instances that move: compare-and-set on (state, epoch),
-- as in tasks/move. An instance that is born with its dispatch (was_state is null) is written elsewhere. A dispatch begins with
-- clean times and no reason, but a try that has been deferred keeps its begin. holds arrive as one array literal each. A person's
-- intent for a deferred task after its clean-up is told there. Some tries are given to workers whose claims wait, as if those
-- claimed now (dispatch/claim): with the same guards. A worker that is locked, or whose claim no longer waits, gets nothing, and
-- its try waits for the next claim. notify/deliver is left the workers and their tries: tries of class 1 that are not mapped in
-- full, as far as a notification can hold them.
with given as materialized (
    select epoch, run_key, task_index, map_index, try_number, class, priority, pg_current_xact_id() as xact, queue,
           holds::bigint[], pool_slots, nullif(avoid, 0) as avoid, event, detail::jsonb, was_state, was_epoch, losses, worker
    from unnest(%(epochs)s::bigint[], %(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[], %(tries)s::smallint[],
                %(classes)s::smallint[], %(priorities)s::bigint[], %(queues)s::text[], %(holds)s::text[], %(slots)s::int[],
                %(avoid)s::bigint[], %(events)s::text[], %(details)s::text[], %(was_states)s::task_state[],
                    %(was_epochs)s::bigint[],
                %(losses)s::smallint[], %(workers)s::bigint[])
         as c (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid, event, detail,
             was_state,
               was_epoch, losses, worker)
), waiting as materialized (
    select service_id, waiting_claim ->> 'key' as key
    from service s
    where service_id = any(%(takers)s::bigint[]) and {{may_claim}}
      and waiting_claim ->> 'key' = any(%(keys)s::text[]) and claim_key is distinct from waiting_claim ->> 'key'
      and not {{is_passed_over}}
    order by service_id
    for no key update skip locked
), answered as (
    update service s set claim_key = w.key, waiting_claim = null, waits_since = null from waiting w
    where s.service_id = w.service_id
), recorded as (
    insert into task_event (run_key, task_index, map_index, epoch, try_number, event, state, detail)
    select run_key, task_index, map_index, epoch, try_number, event, 'queued', detail from given
), queued as (
    update task_instance t
    set state = 'queued', epoch = c.epoch, try_number = c.try_number, losses = t.losses + c.losses, queued_at = now(),
        ended_at = null, reason = null,
        started_at = case when t.started_at is not null then (
            select f.began_at from deferral f where f.run_key = c.run_key and f.task_index = c.task_index
                and f.map_index = c.map_index
        ) end
    from given c
    where t.run_key = c.run_key and t.task_index = c.task_index and t.map_index = c.map_index and t.state = c.was_state
        and t.epoch = c.was_epoch
    returning 1
), written as (
    insert into dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid,
        intent, worker_id, claim_key, claimed_at)
    select epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, avoid,
           case when class = 0 then (
               select f.intent from deferral f where f.run_key = given.run_key and f.task_index = given.task_index
                   and f.map_index = given.map_index
           ) end,
           w.service_id, w.key, case when w.service_id is not null then now() end
    from given
    left join waiting w on w.service_id = given.worker
)
select expect_rows(count(*), %(expected)s, 'Queueing task instances'),
       case when cardinality(%(takers)s::bigint[]) > 0 then set_config('evenflow.given', (
           select coalesce(jsonb_agg(case when length(whole) < 7900 then whole else head end), '[]')::text
           from (
               select jsonb_build_object('worker', w.service_id, 'key', w.key)::text as head,
                      jsonb_build_object('worker', w.service_id, 'key', w.key, 'tries', case
                          when bool_and(class = 1 and map_index < 0) then
                          jsonb_agg(jsonb_build_array(epoch, run_key, task_index, try_number)
                              order by {{tries_in_order}}) end)::text as whole
               from given d
               join waiting w on w.service_id = d.worker
               group by w.service_id, w.key
               union all
               select '', '' where exists (select from given left join waiting w on w.service_id = given.worker
                   where w.service_id is null)
           ) as words
       ), false) end
from queued
