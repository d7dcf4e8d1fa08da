-- The next runs of a backfill that is locked: a new run for a date without one, and, where that is wanted, the run again that a
-- date has already. They queue in the order of the backfill, and so begin in it. Of one over partitions those that there are were
-- passed over when it was made: what is missing runs again, whatever its run says. A partition with a key is a parameter of its
-- run.
with b as (
    select b.*, d.version_key, a.partitions ->> 'param' as param
    from backfill b join dag d using (dag_id) left join asset a on a.name = b.partitions_of
    where b.backfill_id = %(backfill_id)s
), upcoming as (
    select x.* from backfill_run x
    where x.backfill_id = %(backfill_id)s and x.run_key is null and x.passed_over is null
    order by x.position
    limit %(room)s
), existing as (
    select u.position, r.run_key, r.run_id, r.state,
           r.state = 'failed' and (b.reprocess in ('failed', 'completed') or b.partitions_of is not null)
               or r.state = 'success' and (b.reprocess = 'completed' or b.partitions_of is not null) as again
    from upcoming u
    cross join b
    join dag_run r on r.dag_id = b.dag_id and r.logical_date = u.logical_date
), created as (
    insert into dag_run (dag_id, run_id, version_key, run_type, params, logical_date, data_interval_start, data_interval_end,
        priority,
                         backfill_id)
    select b.dag_id,
           'backfill__' || coalesce(
               replace(to_char(u.logical_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '.000000', '') || '+00:00',
               b.backfill_id || '__' || u.position),
           b.version_key, 'backfill',
           case when u.logical_date is null then b.params || jsonb_build_object(b.param, u.partition) else b.params end,
               u.logical_date, u.data_interval_start, u.data_interval_end, b.priority, b.backfill_id
    from upcoming u
    cross join b
    where not exists (select from existing e where e.position = u.position)
    order by u.position
    on conflict do nothing
    returning run_key, run_id, logical_date
), again as (
    update dag_run r set backfill_id = b.backfill_id, priority = b.priority
    from existing e, b
    where r.run_key = e.run_key and e.again
), asked as (
    insert into report (run_key, kind, epoch, payload)
    select e.run_key, 'operate', 0, jsonb_build_object('event', 'clear', 'actor', format('backfill %%s', b.backfill_id))
    from existing e, b
    where e.again
    order by e.position
)
update backfill_run x
set run_key = case when e.position is null then c.run_key when e.again then e.run_key end,
    passed_over = case when e.position is not null and not e.again then format('has the run %%s, which is %%s', e.run_id, e.state)
                       when e.position is null and c.run_key is null then 'another run has its name' end
from upcoming u
left join existing e on e.position = u.position
left join created c on c.logical_date = u.logical_date or u.logical_date is null
    and c.run_id = format('backfill__%%s__%%s', u.backfill_id, u.position)
where x.backfill_id = u.backfill_id and x.position = u.position
