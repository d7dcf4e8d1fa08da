-- Resumes that a person ends leave their lanes for their clean-up. Under the executor's lock, so rows are deleted by ctid. All
-- ready tasks of the run are looked at once, because they are not found by their task (IS TRUE: otherwise that would be a join, of
-- each with each).
with gone as (
    delete from ready_task where ctid = any(array(
        select r.row
        from (select lane_id from lane where run_key = %(run_key)s) as l
        cross join lateral (select ctid as row, task_index, map_index from ready_task where lane_id = l.lane_id offset 0) as r
        where ((r.task_index, r.map_index) in (select * from unnest(%(tasks)s::int[], %(maps)s::int[]))) is true))
    returning lane_id
)
update lane l set ready = l.ready - g.n
from (select lane_id, count(*)::int as n from gone group by lane_id) as g
where l.lane_id = g.lane_id
