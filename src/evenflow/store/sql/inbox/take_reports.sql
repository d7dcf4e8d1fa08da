-- The reports of the runs that inbox/lock_runs has locked, in order, with the dispatch and the task instance that they are about
-- (null when the epoch is past, or is of another run). What people want touches lanes, so it is for the holder of the executor's
-- lock: one of a run at a time, the oldest first, until they are about a number of task instances; each counts as some more, and
-- one is always taken. While there is none at all, no run is looked at for it. The others come run by run, in the order in which
-- the runs are named and no further than the limit, so that a run with a great many costs what is taken of it. Rows are deleted by
-- ctid: they are never updated, and only the holder of the run's lock deletes them. What a success says beyond that is not read. Of
-- a resume it is said what for.
with locked as materialized (
    select run_key, place from unnest(current_setting('evenflow.runs')::bigint[]) with ordinality as k (run_key, place)
), change as materialized (
    select c.ctid, c.report_id, s.size
    from locked k
    cross join lateral (
        select ctid, report_id from report
        where run_key = k.run_key and epoch = 0 and not held and kind in ('cancel', 'operate')
        order by report_id
        limit 1
    ) as c
    cross join lateral (
        select count(*) as size from (select from task_instance where run_key = k.run_key limit %(instances)s) as begun
    ) as s
    where current_setting('evenflow.lead')::boolean and exists (select from report where not held and kind in ('cancel', 'operate'))
), taken as (
    delete from report
    where ctid = any(array(
        select ctid
        from (
            (select ctid
             from (
                 select ctid, report_id, sum(size + %(overhead)s) over (order by report_id) - size - %(overhead)s as before
                 from change
             ) as placed
             where before < %(instances)s
             order by report_id
             limit %(changes)s)
            union all
            (select r.ctid
             from (select run_key from locked order by place) as k
             cross join lateral (
                 select ctid from report
                 where run_key = k.run_key and not held and kind not in ('cancel', 'operate')
                 order by epoch, report_id
                 limit %(limit)s
             ) as r)
        ) as found
        limit %(limit)s))
    returning *
)
select r.run_key, r.epoch, r.kind::text, r.at::text,
    (r.at - make_interval(secs => coalesce((r.payload ->> 'ran_s')::float8, 0)))::text as began_at,
       extract(epoch from r.at)::float8 as at_s, r.payload ->> 'outcome' as outcome,
       case when r.kind <> 'started'
           and (r.payload ->> 'outcome' is distinct from 'success' or r.payload ?| array['skip',
           'produced']) then r.payload end as payload,
       (r.payload ->> 'ran_s')::float8 as ran_s,
       d.task_index, d.map_index, d.holds, d.pool_slots, d.worker_id, t.state::text, t.try_number, t.losses, t.tries_before,
           d.intent,
       d.class is not distinct from 0 as resumes, f.purpose, f.epoch as deferral
from taken r
left join lateral (select * from dispatch where dispatch.epoch = r.epoch and dispatch.run_key = r.run_key offset 0) as d on true
left join lateral (
    select state, try_number, losses, tries_before from task_instance
    where run_key = d.run_key and task_index = d.task_index and map_index = d.map_index and epoch = d.epoch
    offset 0
) as t on true
left join lateral (
    select purpose, epoch from deferral where d.class = 0 and run_key = d.run_key and task_index = d.task_index
        and map_index = d.map_index offset 0
) as f on true
order by r.report_id
