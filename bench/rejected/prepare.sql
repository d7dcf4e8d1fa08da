-- One row a ready task with all that decides, as a selector without lanes would keep it, and the orders that the selectors read by. The
-- order is ascending: priorities are negated. holding is what runs.
create table ready as
select -l.run_priority as run_rank, -l.priority as rank, l.run_after, l.lane_id, r.task_index, r.map_index, l.run_key, l.class_id, n.pool_limit,
       n.executor_limit, n.task_limit, array_remove(array[n.pool_limit, n.executor_limit, n.task_limit], null) || l.locals as limits, n.weight
from ready_task r
join lane l using (lane_id)
join limit_class n using (class_id);
create unique index on ready (run_rank, rank, run_after, lane_id, task_index, map_index);
create index on ready (lane_id, task_index, map_index);
create index on lane (class_id, (-run_priority), (-priority), run_after, lane_id);
create table holding (holding_id bigint generated always as identity primary key, limits bigint[] not null, weight int not null);
insert into holding (limits, weight)
select d.holds, d.pool_slots from dispatch d join dag_run r using (run_key) where r.dag_id = 'run_000' order by d.epoch;
