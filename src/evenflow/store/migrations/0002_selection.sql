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
    drop constraint node_pool_limit_executor_limit_queue_weight_key,
    add unique nulls not distinct (pool_limit, executor_limit, queue, weight, task_limit);

alter table wake add column at timestamptz not null default now();

create index report_oldest on report (report_id);

alter table lane add column since timestamptz not null default now();

-- Lanes that were stored before: those with a max_active_tis_per_dag limit get nodes of their own.
insert into node (pool_limit, executor_limit, queue, weight, task_limit)
select distinct n.pool_limit, n.executor_limit, n.queue, n.weight, c.limit_id
from lane l
join node n using (node_id)
join concurrency_limit c on c.limit_id = any(l.locals) and c.kind = 'dag_task';

update lane l
set node_id = m.node_id, locals = array_remove(l.locals, c.limit_id), parked_on = case when l.parked_on = c.limit_id then 0 else l.parked_on end
from node n, concurrency_limit c, node m
where n.node_id = l.node_id and c.limit_id = any(l.locals) and c.kind = 'dag_task'
  and (m.pool_limit, m.executor_limit, m.queue, m.weight, m.task_limit) = (n.pool_limit, n.executor_limit, n.queue, n.weight, c.limit_id);
