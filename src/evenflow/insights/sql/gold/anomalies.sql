-- Tries that ran far longer than their task does: by more than ten times the usual distance from its median (the median of distances), and by
-- more than a second. Of tasks with 20 tries or more. The more times as long as usual a try ran the more it is worth a look.
with usual as (
    select t.*, percentile(run_us, 0.5) over (partition by dag_id, task_id) as p50_us, count(*) over (partition by dag_id, task_id) as tries
    from attempts t
    where run_day is not null
), distance as (
    select u.*, abs(run_us - p50_us) as away_us from usual u where tries >= 20
), spread as (
    select d.*, percentile(away_us, 0.5) over (partition by dag_id, task_id) as mad_us from distance d
)
select s.dag_id, s.task_id, s.run_key, r.run_id, s.task_index, s.map_index, s.try_number, s.run_began_us as began_us, s.run_us as us, s.p50_us, s.mad_us,
       s.run_us / greatest(s.p50_us, 1) as worth
from spread s
join (select run_key, min(run_id) as run_id from runs group by run_key) r on r.run_key = s.run_key
where s.run_us > s.p50_us and s.away_us > 1000000 and s.away_us > 10 * s.mad_us
