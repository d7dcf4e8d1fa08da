-- How much of each kind is set aside.
select q.kind, count(*)::int as n
from quarantine q
left join dag_run r using (run_key)
left join backfill b on b.backfill_id = case when q.kind = 'backfill' then q.object::bigint end
where %(scope)s::jsonb is null or {{set_aside_of}} in (select dags_in_scope(%(scope)s::jsonb))
group by q.kind
