-- Workers that live, or those of these names: what they serve, whether they take tries, and the tries that each has, by queue. JSON
-- is answered as text.
select s.service_id, s.name, {{takes_work}} as is_ready,
       coalesce((s.detail ->> 'slots')::int, 0) as slots, coalesce(s.detail -> 'queues', '[]')::text as queues,
       extract(epoch from s.started_at)::float8 as began_at, case when s.fence_until > now() then s.fence end as fence,
       exists (select from service_state c where c.kind = 'worker' and c.name = s.name) as out_of_service,
       coalesce(d.running, 0)::int as running, d.by_queue::text, d.age_s
from service s
left join lateral (
    select sum(number)::int as running, jsonb_object_agg(queue, number) as by_queue, (sum(age_s) / sum(number))::float8 as age_s
    from (
        select queue, count(*)::int as number, extract(epoch from sum(now() - claimed_at)) as age_s
        from dispatch
        where worker_id = s.service_id
        group by queue
        offset 0
    ) as q
) as d on true
where s.kind = 'worker' and s.state in ('active', 'draining') and (%(names)s::text[] is null or s.name = any(%(names)s::text[]))
order by s.service_id
