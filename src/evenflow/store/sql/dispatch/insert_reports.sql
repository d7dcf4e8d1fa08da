-- A batch of reports into the inbox, with the results that exits bring. A result is stored while its try has a dispatch, which is
-- kept until this commits (KEY SHARE); SKIP LOCKED: one that is being deleted right now belongs to a try that is over. The deleting
-- transaction may still roll back: so a success whose result is not stored counts as lost, should its try be current after all.
-- Objects of such results are garbage. In the order of epochs, so that two copies of a batch cannot wait for each other.
with given as materialized (
    select *
    from json_to_recordset(%(reports)s::json) as g (run_key bigint, task_index int, map_index int, epoch bigint, kind report_kind,
                                                     age_s float8, payload jsonb, result text, secret bool,
                                                     object text, size int, length int)
), lasting as (
    select epoch from dispatch where epoch in (select epoch from given where result is not null) for key share skip locked
), results as (
    insert into xcom (run_key, task_index, map_index, key, value, length, epoch, secret, object, size)
    select run_key, task_index, map_index, 'return_value', value, coalesce(length, result_length(value)), epoch,
        coalesce(secret, false),
           object, size
    from (
        select distinct on (epoch) run_key, task_index, map_index, result::jsonb as value, epoch, secret, object, size, length
        from given
        join lasting using (epoch)
        where result is not null
        order by epoch
    ) as r
    where jsonb_typeof(value) <> 'null' or object is not null
    {{replaces_xcom}}
), dropped as materialized (
    select g.epoch, g.object
    from given g
    where g.result is not null and (g.result <> 'null' or g.object is not null) and g.epoch not in (select epoch from lasting)
      and not exists (
          select from xcom x
          where x.run_key = g.run_key and x.task_index = g.task_index and x.map_index = g.map_index and x.key = 'return_value'
            and (x.epoch = g.epoch or x.object = g.object))
), unused as (
    insert into xcom_garbage (object) select distinct object from dropped where object is not null on conflict do nothing
)
insert into report (run_key, kind, epoch, at, payload)
select run_key, kind, epoch, now() - make_interval(secs => age_s),
       case when epoch in (select epoch from dropped) and payload ->> 'outcome' = 'success'
            then payload || '{"outcome": "lost", "reason": "its result came while another try was to take its place"}'
            else payload end
from given
