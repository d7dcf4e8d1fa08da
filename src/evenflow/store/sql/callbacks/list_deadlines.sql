-- The deadlines of a DAG, in the order of this version of it: when each falls due next, of which run that waits or runs, or of the
-- next date of its schedule where none does; and how many of the newest runs have missed it, and which one last.
with subject as materialized (
    select d.dag_id, v.deadlines, case when d.is_active and not d.is_paused then d.next_run_at end as next_run_at, d.next_logical
    from dag d
    join dag_version v on v.version_key = %(version_key)s
    where d.dag_id = %(dag_id)s
), open as materialized (
    select v.deadlines -> t.task_index ->> 'name' as name, t.due_at, r.run_id
    from dag_run r
    join dag_version v using (version_key)
    join timer t on t.run_key = r.run_key and t.kind = 'deadline'
    where r.dag_id = %(dag_id)s and r.state in ('queued', 'running')
), missed as materialized (
    select e.detail ->> 'deadline' as name, e.at, (e.detail ->> 'due_at')::timestamptz as due_at, r.run_id
    from (select run_key, run_id from dag_run where dag_id = %(dag_id)s order by run_key desc limit %(runs)s) as r
    join run_event e on e.run_key = r.run_key and e.event = 'deadline_missed'
)
select d.position::int as position, coalesce(n.due_at, case when f.due_at > now() then f.due_at end) as next_due_at,
    n.run_id as next_run_id, m.missed, l.run_id as last_missed_run_id, l.due_at as last_missed_due_at
from subject s
cross join lateral jsonb_array_elements(s.deadlines) with ordinality as d (deadline, position)
left join lateral (select due_at, run_id from open where name = d.deadline ->> 'name' order by due_at limit 1) as n on true
left join lateral (
    select due_of_deadline(d.deadline, s.dag_id, s.next_run_at, s.next_logical, s.next_run_at) as due_at
    where s.next_run_at is not null
) as f on true
cross join lateral (select count(*)::int as missed from missed where name = d.deadline ->> 'name') as m
left join lateral (
    select run_id, due_at from missed where name = d.deadline ->> 'name' order by at desc, run_id desc limit 1
) as l on true
order by d.position
