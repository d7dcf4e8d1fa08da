-- These limits as people know them; what was released and is not folded yet is room already.
select l.limit_id, l.kind::text as "limit",
       case when r.run_key is null then l.name else concat_ws('/', r.dag_id, r.run_id, nullif(l.name, '')) end as name,
       l.capacity, l.used - coalesce(w.released, 0) as used, l.patience_s
from concurrency_limit l
left join dag_run r on l.run_key <> 0 and r.run_key = l.run_key
left join (select limit_id, sum(released)::int as released from wake group by limit_id) as w using (limit_id)
where l.limit_id = any(%(limits)s::bigint[])
