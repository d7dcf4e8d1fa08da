-- The invariant of selection: a lane is open, or paused as its DAG is, or parked on a limit of its own that is full, or parked on
-- one with room while a better lane of its base with that limit is woken; of a run in quarantine it is parked as such. A wake that
-- waits to be folded, or a pause to be applied, excuses it.
with placed as (
    select l.*, r.dag_id, r.run_id, r.quarantined_at is not null as in_quarantine, d.is_paused,
        d.is_paused <> d.pause_applied as pause_pending,
           n.base_id as base_of_class, n.task_limit, c.limit_id,
           c.capacity > c.used and not exists (select from wake w where w.limit_id = c.limit_id) as has_room,
           concat_ws(' ', c.kind, nullif(c.name, '')) as limit_name
    from lane l
    join limit_class n using (class_id)
    join dag_run r using (run_key)
    join dag d using (dag_id)
    left join concurrency_limit c on c.limit_id = l.parked_on
), judged as (
    select p.*,
           case
               when p.in_quarantine <> (p.parked_on = -3) then 'in quarantine, or not, unlike its run'
               when p.in_quarantine then null
               when p.parked_on = -1 and not p.is_paused and not p.pause_pending then 'paused, its DAG is not'
               when p.parked_on <> -1 and p.is_paused and not p.exempt and not p.pause_pending then 'not paused, its DAG is'
               when p.parked_on > 0 and p.limit_id is null then 'parked on a limit that is gone'
               when p.parked_on > 0
                   and p.parked_on <> all(p.locals || coalesce(p.task_limit, 0)) then 'parked on a limit that is not its own'
               when p.base_id <> p.base_of_class then 'in another queue'
               when p.has_room and not exists (
                   select from lane o
                   join limit_class m using (class_id)
                   where o.parked_on = -2 and o.base_id = p.base_id
                       and (o.locals @> array[p.parked_on] or m.task_limit = p.parked_on)
                     and o.order_key < p.order_key
               ) then 'parked on ' || p.limit_name || ', which has room'
           end as found
    from placed p
)
select concat('lane ', lane_id, ' of ', dag_id, '/', run_id) as object, found,
       case when in_quarantine then 'in quarantine' when is_paused then 'paused'
           else 'open, or parked on a full limit of its own' end as expected
from judged
where found is not null
limit %(most)s
