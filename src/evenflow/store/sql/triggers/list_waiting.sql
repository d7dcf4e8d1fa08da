-- Tasks that wait for a trigger, for people to read: the longest waiting first. What waits for people themselves is
-- approvals/list_waiting.
select jsonb_build_array(d.deferred_at, d.epoch) as place, r.dag_id, r.run_id, t.task_id, d.map_index, d.trigger, d.queue,
    d.deferred_at, d.timeout_at, s.name as triggerer, d.claimed_at,
       d.failures, d.due_at
from deferral d
join dag_run r on r.run_key = d.run_key
join task t on t.version_key = r.version_key and t.task_index = d.task_index
left join service s on s.service_id = d.triggerer_id
where d.purpose is null and d.due_at < 'infinity'
  and (%(dag_id)s::text is null or r.dag_id = %(dag_id)s)
  and (%(run_id)s::text is null or r.run_id = %(run_id)s)
  and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null
      or (d.deferred_at, d.epoch) > ((%(after)s::jsonb ->> 0)::timestamptz, (%(after)s::jsonb ->> 1)::bigint))
order by d.deferred_at, d.epoch
limit %(limit)s
