-- Tries that ran far longer than their task does: by more than ten times the usual distance from its median (the median of distances), and by
-- more than a second. Of tasks with 20 tries or more.
with attempt as (
    select dag_id, task_id, run_key, task_index, map_index, try_number, min(began_us) as began_us, sum(us) as us
    from segments
    where cause = 'running'
    group by dag_id, task_id, run_key, task_index, map_index, try_number
), usual as (
    select dag_id, task_id, percentile(us, 0.5) as p50_us from attempt group by dag_id, task_id having count(*) >= 20
), distance as (
    select t.*, u.p50_us, abs(t.us - u.p50_us) as away_us from attempt t join usual u on u.dag_id = t.dag_id and u.task_id = t.task_id
), spread as (
    select dag_id, task_id, percentile(away_us, 0.5) as mad_us from distance group by dag_id, task_id
)
select d.dag_id, d.task_id, d.run_key, r.run_id, d.task_index, d.map_index, d.try_number, d.began_us, d.us, d.p50_us, s.mad_us
from distance d
join spread s on s.dag_id = d.dag_id and s.task_id = d.task_id
join (select run_key, min(run_id) as run_id from runs group by run_key) r on r.run_key = d.run_key
where d.us > d.p50_us and d.away_us > 1000000 and d.away_us > 10 * s.mad_us
