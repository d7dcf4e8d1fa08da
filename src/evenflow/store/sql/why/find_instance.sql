-- A task instance with all that says where it stands: its run, its DAG, its row or the mapped task that stands for it, its
-- dispatch, its retry, what it waits for. Of a mapped task that is not expanded, the row that stands for it.
select r.run_key, r.version_key, r.dag_id, r.run_id, r.state::text as run_state, r.run_after, r.run_after > now() as is_early,
    r.ended_at as run_ended_at,
       r.reason as run_reason, d.is_paused, k.task_index, k.task_id,
       coalesce(p.spec ->> 'trigger_rule', 'all_success') as trigger_rule, m.length, m.virtual_state::text, t.state::text,
           t.try_number, t.ended_at,
       t.reason, t.poking_since, x.epoch, x.class, x.priority, x.queue, x.created_at as granted_at, x.claimed_at, x.kill_at,
           s.name as worker, s.host,
       coalesce(s.detail -> 'outrun' @> to_jsonb(x.epoch), false) as outrun,
       (select due_at from timer
        where timer.run_key = r.run_key and timer.epoch = t.epoch and t.state in ('up_for_retry', 'up_for_reschedule')
        limit 1) as due_at,
       (select count(*)::int from service s
        where kind = 'scheduler' and {{takes_work}}) as schedulers,
       f.trigger, f.deferred_at, f.timeout_at, f.failures, f.due_at > now() as backs_off, nullif(f.due_at, 'infinity') as tried_at,
           f.due_at = 'infinity' as asks, f.claimed_at as trigger_claimed_at,
       g.name as triggerer, g.host as triggerer_host, q.reason as quarantine, q.since as quarantined_at
from dag_run r
join dag d on d.dag_id = r.dag_id
join task k on k.version_key = r.version_key and k.task_id = %(task_id)s
join dag_version v on v.version_key = r.version_key
cross join lateral (select v.spec -> 'tasks' -> k.task_index as spec offset 0) as p
left join mapped_task m on m.run_key = r.run_key and m.task_index = k.task_index
left join task_instance t on t.run_key = r.run_key and t.task_index = k.task_index
                         and t.map_index = case when m.length is null then -1 else %(map_index)s::int end
left join dispatch x on x.epoch = t.epoch
left join service s on s.service_id = x.worker_id
left join deferral f on f.run_key = t.run_key and f.task_index = t.task_index and f.map_index = t.map_index and t.state = 'deferred'
left join service g on g.service_id = f.triggerer_id
left join quarantine q on q.run_key = r.run_key
where r.dag_id = %(dag_id)s and r.run_id = %(run_id)s
