-- By day and DAG: how late runs began after they were due, and how long tries waited for limits and workers once they could begin.
with begun as (
    select e.run_key, min(unix_micros(e.at)) as begun_us from run_events e where e.event = 'start' group by e.run_key
), run as (
    select r.dag_id, cast(floor(b.begun_us / 86400000000) as bigint) as day, greatest(b.begun_us - r.run_after_us, 0) as late_us
    from (select run_key, min(dag_id) as dag_id, min(unix_micros(run_after)) as run_after_us from runs group by run_key) r
    join begun b on b.run_key = r.run_key
), of_run as (
    select dag_id, day, count(*) as runs, percentile(late_us, 0.5) as run_p50_us, percentile(late_us, 0.9) as run_p90_us, percentile(late_us, 0.99) as run_p99_us
    from run
    group by dag_id, day
), of_try as (
    select dag_id, day, count(*) as tries, percentile(wait_us, 0.5) as wait_p50_us, percentile(wait_us, 0.9) as wait_p90_us, percentile(wait_us, 0.99) as wait_p99_us
    from attempts
    group by dag_id, day
)
select t.dag_id, t.day, coalesce(r.runs, 0) as runs, t.tries, r.run_p50_us, r.run_p90_us, r.run_p99_us, t.wait_p50_us, t.wait_p90_us, t.wait_p99_us
from of_try t
left join of_run r on r.dag_id = t.dag_id and r.day = t.day
