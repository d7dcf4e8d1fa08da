-- The critical path of each run, every fourth task of it, from the task that ended last: five of them, so a path has its last 20.
with step0 as (
    select run_key, task_index, 0 as back from blockers where from_end = 1
), step1 as (
    select s.run_key, j.upstream as task_index, 4 as back from step0 s join jumps j on j.run_key = s.run_key and j.task_index = s.task_index
), step2 as (
    select s.run_key, j.upstream as task_index, 8 as back from step1 s join jumps j on j.run_key = s.run_key and j.task_index = s.task_index
), step3 as (
    select s.run_key, j.upstream as task_index, 12 as back from step2 s join jumps j on j.run_key = s.run_key and j.task_index = s.task_index
), step4 as (
    select s.run_key, j.upstream as task_index, 16 as back from step3 s join jumps j on j.run_key = s.run_key and j.task_index = s.task_index
)
select run_key, task_index, back from step0
union all
select run_key, task_index, back from step1
union all
select run_key, task_index, back from step2
union all
select run_key, task_index, back from step3
union all
select run_key, task_index, back from step4
