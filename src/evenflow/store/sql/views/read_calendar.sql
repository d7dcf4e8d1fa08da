-- The newest runs of a DAG by the day that they are for, and how they ended: of runs without a logical date, the day in which they
-- were made. As many as the limit are counted, in the order of the index, so a DAG of each second costs no more than others.
with counted as materialized (
    select coalesce(logical_date, created_at) as of, created_at, state, extract(epoch from ended_at - started_at)::float8 as took_s
    from dag_run
    where dag_id = %(dag_id)s
    order by run_key desc
    limit %(runs)s
)
select to_char(of at time zone 'UTC', 'YYYY-MM-DD') as day, count(*)::int as runs,
       (count(*) filter (where state = 'success'))::int as success, (count(*) filter (where state = 'failed'))::int as failed,
       percentile_cont(0.5) within group (order by took_s) as median_s, max(took_s) as longest_s
from counted
where of > now() - interval '366 days' and of < now() + interval '1 day'
group by 1
order by 1
