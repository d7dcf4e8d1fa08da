-- Scheduled runs. A name or a logical date that the DAG has already stays with the run that has it.
insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, data_interval_start, data_interval_end, run_after)
select dag_id, run_id, version_key, 'scheduled', params::jsonb, logical_date, interval_start, interval_end, run_after
from unnest(%(dag_ids)s::text[], %(run_ids)s::text[], %(version_keys)s::bigint[], %(params)s::text[],
    %(logical_dates)s::timestamptz[],
            %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(run_afters)s::timestamptz[])
     with ordinality as c (dag_id, run_id, version_key, params, logical_date, interval_start, interval_end, run_after, position)
order by position
on conflict do nothing
