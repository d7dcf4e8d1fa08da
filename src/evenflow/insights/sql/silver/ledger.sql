-- What each move takes of each limit, and gives back. A task instance holds its limits while it is queued or runs; while it is deferred it
-- keeps those that its event names. Within a transaction what is given back comes first, then first starts, then what comes back.
with held as (
    select *
    from moves
    where (state in ('queued', 'running', 'deferred') or before in ('queued', 'running', 'deferred'))
      and not (state in ('queued', 'running') and before in ('queued', 'running'))
), change as (
    select m.run_key, m.task_index, m.map_index, m.tx_us, m.xact, m.epoch, m.event, m.dag_id, t.kind, t.name, t.of_run, t.capacity,
           case when m.event = 'grant' and m.purpose is null and m.event_before is distinct from 'ordinary_resume' then 1 else 0 end as is_first,
           t.slots * (
               case when m.state in ('queued', 'running') then 1
                    when m.state = 'deferred' and coalesce(m.keeps, '') like concat('%"', t.kind, '"%') then 1 else 0 end
             - case when m.before in ('queued', 'running') then 1
                    when m.before = 'deferred' and coalesce(m.kept_before, '') like concat('%"', t.kind, '"%') then 1 else 0 end
           ) as taken
    from held m
    join terms t on t.version_key = m.version_key and t.task_index = m.task_index
)
select case when of_run then run_key else 0 end as scope, kind, name, run_key, task_index, map_index, tx_us, xact, epoch, dag_id, is_first,
       capacity, taken,
       case when taken < 0 then 0 when is_first = 1 then 1 else 2 end as place,
       cast(floor(tx_us / 3600000000) as bigint) as hour
from change
where taken <> 0
