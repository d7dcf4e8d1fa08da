-- Ready tasks ranked within every limit that they have, one limit after the other: what survives them all starts. A task that passes one
-- limit and fails the next has used up a rank of the first, so room may stay empty although somebody could take it.
with by_run as (
    select *, row_number() over (partition by run_key order by run_rank, rank, run_after, lane_id, task_index, map_index) as n
    from ready
), fits_run as (
    select r.* from by_run r
    left join concurrency_limit l on l.run_key = r.run_key and l.kind = 'run' and l.name = ''
    where l.limit_id is null or r.n <= l.capacity - l.used
), by_task as (
    select run_rank, rank, run_after, lane_id, task_index, map_index, pool_limit, executor_limit, task_limit, weight,
           row_number() over (partition by task_limit order by run_rank, rank, run_after, lane_id, task_index, map_index) as n
    from fits_run
), fits_task as (
    select t.* from by_task t
    left join concurrency_limit l on l.limit_id = t.task_limit
    where l.limit_id is null or t.n <= l.capacity - l.used
), by_pool as (
    select run_rank, rank, run_after, lane_id, task_index, map_index, pool_limit, executor_limit,
           sum(weight) over (partition by pool_limit order by run_rank, rank, run_after, lane_id, task_index, map_index) as slots
    from fits_task
), fits_pool as (
    select p.* from by_pool p
    join concurrency_limit l on l.limit_id = p.pool_limit
    where p.slots <= l.capacity - l.used
), by_executor as (
    select *, row_number() over (partition by executor_limit order by run_rank, rank, run_after, lane_id, task_index, map_index) as n
    from fits_pool
)
select e.lane_id, e.task_index, e.map_index
from by_executor e
join concurrency_limit l on l.limit_id = e.executor_limit
where e.n <= l.capacity - l.used
order by e.run_rank, e.rank, e.run_after, e.lane_id, e.task_index, e.map_index
limit %(page)s
