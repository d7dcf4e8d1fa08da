-- What is set aside, the latest first.
select jsonb_build_array(q.since, q.kind, q.object) as place, q.kind, q.object, q.since, q.reason, r.dag_id, r.run_id
from quarantine q
left join dag_run r using (run_key)
left join backfill b on b.backfill_id = case when q.kind = 'backfill' then q.object::bigint end
where (%(scope)s::jsonb is null or {{set_aside_of}} in (select dags_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or q.since < (%(after)s::jsonb ->> 0)::timestamptz
       or q.since = (%(after)s::jsonb ->> 0)::timestamptz and (q.kind, q.object) > (%(after)s::jsonb ->> 1, %(after)s::jsonb ->> 2))
order by q.since desc, q.kind, q.object
limit %(limit)s
