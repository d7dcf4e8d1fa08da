-- Selection: max_active_tis_per_dag moves from the lane to its node, pools get a patience, and lanes and limits say since when.

alter table concurrency_limit
    add column patience_s real check (patience_s >= 0),
    add column released_at timestamptz not null default now(),
    add column lowered_at timestamptz;

create function note_lowered() returns trigger language plpgsql as
$$ begin new.lowered_at := clock_timestamp(); return new; end $$;
create trigger lowered before update of capacity on concurrency_limit
    for each row when (new.capacity < old.capacity) execute function note_lowered();
create trigger made_low before insert on concurrency_limit
    for each row when (new.used > new.capacity) execute function note_lowered();

alter table node
    add column task_limit bigint references concurrency_limit,
    add column base_id int references node,
    drop constraint node_pool_limit_executor_limit_queue_weight_key,
    add unique nulls not distinct (pool_limit, executor_limit, queue, weight, task_limit);
update node set base_id = node_id;
alter table node alter column base_id set not null;

alter table wake add column at timestamptz not null default now();

create index report_oldest on report (report_id);

alter table dispatch alter column priority type bigint;

drop index dag_run_waiting;
create index dag_run_waiting on dag_run (dag_id, priority desc, run_after, run_key) where state = 'queued';

alter table lane
    add column since timestamptz not null default now(),
    add column queue_id int;

-- Lanes that were stored before: those with a max_active_tis_per_dag limit get nodes of their own, and all open, as what has just become
-- ready. The next round parks those that cannot start.
insert into node (pool_limit, executor_limit, queue, weight, task_limit, base_id)
select distinct n.pool_limit, n.executor_limit, n.queue, n.weight, c.limit_id, n.node_id
from lane l
join node n using (node_id)
join concurrency_limit c on c.limit_id = any(l.locals) and c.kind = 'dag_task';

update lane l
set node_id = m.node_id, locals = array_remove(l.locals, c.limit_id)
from concurrency_limit c, node m
where c.limit_id = any(l.locals) and c.kind = 'dag_task' and m.base_id = l.node_id and m.task_limit = c.limit_id;

update lane set queue_id = node_id, parked_on = case when parked_on = -1 then -1 else 0 end;
alter table lane alter column queue_id set not null;
drop index lane_order;
create index lane_order on lane (parked_on, queue_id, run_priority desc, priority desc, run_after, lane_id);
