-- What must never be in a history. Moves that the table of states does not have; what happens twice to a dispatch; a dispatch of two task instances; a
-- report that changed another dispatch than its own; a first start above a limit; moves of runs that are not legal; more runs of a DAG at
-- once than it allows. Of a limit whose capacity was changed, the largest of the minute around counts: both have times of their own.
with run_move as (
    select e.run_key, unix_micros(e.at) as at_us, e.event, e.state, r.dag_id, r.run_type,
           coalesce(lag(e.state) over (partition by e.run_key order by e.at, e.xact), 'queued') as before
    from run_events e
    left join (select run_key, min(dag_id) as dag_id, min(run_type) as run_type from runs group by run_key) r on r.run_key = e.run_key
), over as (
    select u.scope, u.kind, u.name, u.tx_us, u.xact, u.used, u.capacity
    from usage u
    where u.is_first = 1 and u.place = 1 and u.used > u.capacity
), allowed as (
    select o.scope, o.kind, o.name, o.tx_us, o.xact, max(c.capacity) as capacity
    from over o
    join (select kind, name, from_us, capacity, lead(from_us) over (partition by kind, name order by from_us) as until_us from capacities) c
      on c.kind = o.kind and c.name = o.name and c.from_us - 60000000 <= o.tx_us and (c.until_us is null or o.tx_us < c.until_us + 60000000)
    group by o.scope, o.kind, o.name, o.tx_us, o.xact
), run_cap as (
    select dag_id, max(max_active_runs) as capacity, max(case when max_active_runs is null then 1 else 0 end) as is_open from tasks group by dag_id
), run_step as (
    select dag_id, run_key, at_us, case when state = 'running' then 1 else -1 end as step
    from run_move
    where run_type <> 'backfill' and (state = 'running') <> (before = 'running')
), run_use as (
    select dag_id, run_key, at_us, step, sum(step) over (partition by dag_id order by at_us, step, run_key rows between unbounded preceding and current row) as used
    from run_step
)
select 'illegal move' as kind, m.run_key, m.task_index, m.map_index, m.at_us, m.epoch, concat(m.before, ' ', m.event, ' ', m.state) as what
from moves m
left join legal l on l.before = m.before and l.event = m.event and l.state = m.state
where l.event is null
union all
select 'happened twice', run_key, task_index, map_index, max(at_us), epoch, event
from moves
where epoch > 0 and event in ('grant', 'start', 'succeed', 'fail', 'retry', 'defer', 'resume', 'requeue', 'reschedule')
group by run_key, task_index, map_index, epoch, event
having count(*) > 1
union all
select 'dispatch of two', min(run_key), min(task_index), min(map_index), max(at_us), epoch, 'grant'
from moves
where event in ('grant', 'resume', 'requeue')
group by epoch
having min(run_key) <> max(run_key) or min(task_index) <> max(task_index) or min(map_index) <> max(map_index)
union all
select 'of another dispatch', run_key, task_index, map_index, at_us, epoch, concat(event, ' of a dispatch that was over')
from moves
where event in ('start', 'succeed', 'fail', 'retry', 'defer', 'reschedule') and before in ('queued', 'running') and epoch <> epoch_before
union all
select 'above a limit', o.scope, cast(null as int), cast(null as int), o.tx_us, o.xact, concat(o.kind, ' ', o.name, ': ', o.used, ' of ', coalesce(a.capacity, o.capacity))
from over o
left join allowed a on a.scope = o.scope and a.kind = o.kind and a.name = o.name and a.tx_us = o.tx_us and a.xact = o.xact
where o.used > coalesce(a.capacity, o.capacity)
union all
select 'illegal move of a run', m.run_key, cast(null as int), cast(null as int), m.at_us, cast(0 as bigint), concat(m.before, ' ', m.event, ' ', m.state)
from run_move m
left join legal_runs l on l.before = m.before and l.event = m.event and l.state = m.state
where m.event in ('start', 'succeed', 'fail') and l.event is null
union all
select 'more runs than allowed', u.run_key, cast(null as int), cast(null as int), u.at_us, cast(0 as bigint), concat(u.dag_id, ': ', u.used, ' of ', c.capacity)
from run_use u
join run_cap c on c.dag_id = u.dag_id and c.is_open = 0
where u.step = 1 and u.used > c.capacity
