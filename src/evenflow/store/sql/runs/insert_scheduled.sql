-- A scheduled run; one that exists already stays.
insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, data_interval_start, data_interval_end, run_after)
values (%(dag_id)s, %(run_id)s, %(version_key)s, 'scheduled', %(params)s, %(logical_date)s, %(start)s, %(end)s, %(run_after)s)
on conflict (dag_id, run_id) do nothing
