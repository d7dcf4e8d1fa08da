-- Asks for the other waiting tasks of these runs to be judged, behind these instances. This covers earlier requests. The runs are
-- locked, so no other transaction deletes their reports.
with rest as (
    select * from unnest(%(run_keys)s::bigint[], %(tasks)s::int[], %(maps)s::int[]) as r (run_key, task_index, map_index)
), covered as (
    delete from report
    where run_key in (select run_key from rest) and epoch = 0 and kind = 'settle'
), asked as (
    insert into report (run_key, kind, epoch, payload)
    select run_key, 'settle', 0, jsonb_build_object('after', jsonb_build_array(task_index, map_index)) from rest
)
select pg_notify('inbox', '')
