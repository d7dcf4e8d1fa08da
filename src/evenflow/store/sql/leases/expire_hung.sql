-- Marks workers as lost that beat, and have held a try for longer than they may: not started, not ended after its execution
-- timeout, or not killed. What its worker says to run has started, whatever became of the report. Counted by the clock of leases,
-- so time in which no service could be heard does not count. A report that waits to be applied may be the one that is missed. A
-- worker that says that it cannot end a try of its own is not lost: elsewhere that task would begin beside the process that lives,
-- and the worker does all that it can. OFFSET 0: the spec of a task and its state are looked up try by try, whatever the plan was
-- made for. In the order of services; SKIP LOCKED: one that is claiming, beating or being given up right now is looked at again the
-- next time.
with clock as materialized (
    select ticked_at, counted_from from lease_clock
), held as materialized (
    select d.worker_id, d.epoch, d.run_key, d.task_index, d.map_index,
        c.ticked_at - greatest(d.claimed_at, c.counted_from) as held_for,
           c.ticked_at - greatest(d.kill_at, c.counted_from) as killed_for, d.kill, d.started
    from clock c
    join service s on s.kind = 'worker' and s.state in ('active', 'draining')
                  and not (s.detail ? 'outrun' and exists (
                          select from dispatch o where o.worker_id = s.service_id and s.detail -> 'outrun' @> to_jsonb(o.epoch)))
    join dispatch d on d.worker_id = s.service_id
    where greatest(d.claimed_at, c.counted_from) < c.ticked_at - make_interval(secs => %(starts_within_s)s)
      and (select true from report r where r.run_key = d.run_key and r.epoch = d.epoch limit 1) is null
), hung as materialized (
    select distinct on (h.worker_id) h.worker_id, h.epoch, r.dag_id, r.run_id, k.task_id,
           case when t.state = 'queued' and not h.started then 'started' when h.kill then 'killed' else 'ended' end as missed
    from held h
    cross join lateral (
        select state from task_instance i
        where i.run_key = h.run_key and i.task_index = h.task_index and i.map_index = h.map_index and i.epoch = h.epoch
        offset 0) as t
    cross join lateral (select dag_id, run_id, version_key from dag_run where dag_run.run_key = h.run_key offset 0) as r
    cross join lateral (
        select task_id, execution_timeout_s from task where task.version_key = r.version_key and task.task_index = h.task_index
        offset 0) as k
    where t.state = 'queued' and not h.started
       or h.held_for > make_interval(secs => %(ending_s)s + %(stretch)s * k.execution_timeout_s)
       or h.kill and h.killed_for > make_interval(secs => %(ending_s)s)
    order by h.worker_id, h.epoch
), met as materialized (
    select service_id from service
    where service_id in (select worker_id from hung) and state in ('active', 'draining')
    order by service_id
    for no key update skip locked
)
update service s
set state = 'lost'
from met
join hung on hung.worker_id = met.service_id
where s.service_id = met.service_id
returning s.service_id, s.name, s.host, hung.epoch, hung.dag_id, hung.run_id, hung.task_id, hung.missed
