-- The newest scheduled run of a DAG, and since when the DAG is known: now, when it is new.
select r.logical_date, r.data_interval_end, coalesce(d.first_seen_at, now())
from (select %(dag_id)s::text as dag_id) as asked
left join dag d using (dag_id)
left join lateral (
    select logical_date, data_interval_end
    from dag_run
    where dag_run.dag_id = asked.dag_id and run_type = 'scheduled' and logical_date is not null
    order by logical_date desc
    limit 1
) as r on true
