-- By task: how long its tries run, and how that has changed: the median of its last day against that of the days before. It drifts when the last
-- day has ten tries at least and its median is a quarter more, or less, than before. What took no time before has no multiple of it, and drifts
-- nowhere. The further off, the more it is worth a look.
with dated as (
    select dag_id, task_id, run_day as day, run_us as us, max(run_day) over (partition by dag_id, task_id) as last_day
    from attempts
    where run_day is not null
), quantile as (
    select dag_id, task_id, count(*) as tries, percentile(us, 0.5) as p50_us, percentile(us, 0.9) as p90_us, percentile(us, 0.99) as p99_us,
           percentile(case when day = last_day then us end, 0.5) as last_p50_us,
           percentile(case when day < last_day then us end, 0.5) as before_p50_us,
           count(case when day = last_day then 1 end) as last_tries, max(last_day) as last_day
    from dated
    group by dag_id, task_id
), judged as (
    select q.*, last_p50_us / nullif(before_p50_us, 0) as drift,
           case when last_tries >= 10 and before_p50_us > 0 and (last_p50_us > before_p50_us * 1.25 or last_p50_us < before_p50_us * 0.75) then 1 else 0 end as drifts
    from quantile q
)
select j.*, case when drifts = 1 then abs(drift - 1) end as worth from judged j
