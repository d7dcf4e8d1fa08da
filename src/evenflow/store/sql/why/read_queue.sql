-- How many dispatches of a queue are claimed before this one, as far as their order decides, and which workers serve the queue or
-- would, were they not out of service; the executor of the queue, if it is sent what waits there. Those that resume take the slots
-- for resumes, too, when all others are busy, and are kept from a worker by nothing but that it is frozen.
select (select count(*)::int
        from (
            select from (
                select class, priority, epoch from dispatch where queue = %(queue)s and worker_id is null and sent_at is null
                union all
                select class, priority, epoch from dispatch where queue = %(queue)s and worker_id is null and sent_at is not null
            ) as w
            where (class < %(class)s or class = %(class)s
                and (priority > %(priority)s or priority = %(priority)s and epoch < %(epoch)s))
            limit %(counted)s
        ) as before) as ahead,
       (select executor from queue_executor where queue = %(queue)s and push) as executor,
       (select kind from queue_executor where queue = %(queue)s and push) as executor_kind,
       (select name from fleet where %(queue)s = any (queues) order by name limit 1) as fleet,
       (select target from fleet where %(queue)s = any (queues) order by name limit 1) as fleet_target,
       (select count(*)::int from service s
        where s.kind = 'launcher' and {{takes_work}}
          and s.detail -> 'executors' ? (select executor from queue_executor where queue = %(queue)s)) as launchers,
       (select min(s.detail -> 'refused' ->> (select executor from queue_executor where queue = %(queue)s)) from service s
        where s.kind = 'launcher' and {{takes_work}}) as refusal,
       (select s.detail -> 'waiting' -> q.executor -> %(epoch)s::text
        from service s join queue_executor q on q.queue = %(queue)s
        where s.kind = 'launcher' and {{takes_work}} and s.detail -> 'waiting' -> q.executor ? %(epoch)s::text
        order by s.service_id limit 1) as pod,
       (count(*) filter (where c.name is null))::int as workers,
       coalesce(sum(r.slots) filter (where c.name is null), 0)::int as slots,
       coalesce(sum(least(b.busy, r.slots)) filter (where c.name is null), 0)::int as busy,
       count(c.name)::int as closed, min(c.name) as closed_worker, (array_agg(c.state::text order by c.name))[1] as closed_state,
       (array_agg(c.since order by c.name))[1] as closed_since, (array_agg(c.actor order by c.name))[1] as closed_by
from service s
left join service_state c on c.kind = 'worker' and c.name = s.name and (c.state = 'frozen' or not %(resumes)s)
cross join lateral (
    select (s.detail ->> 'slots')::int + case when %(resumes)s then coalesce((s.detail ->> 'resume_slots')::int, 0)
        else 0 end as slots
) as r
cross join lateral (select count(*)::int as busy from dispatch where dispatch.worker_id = s.service_id) as b
where s.kind = 'worker' and {{takes_work}}
  and s.detail -> 'queues' ? %(queue)s
