-- The deadlines of a run, in the order of its version: when each is due, and whether it is open, met or missed. A run that has
-- ended in time has met its deadlines. One by the average runtime is known as long as its timer is there; without a moment it
-- has none.
select d.deadline ->> 'name' as name, x.due_at,
    case when m.due_at is not null then 'missed'
         when t.due_at is not null and r.state in ('queued', 'running') then 'open' else 'met' end as state
from dag_run r
join dag_version v using (version_key)
cross join lateral jsonb_array_elements(v.deadlines) with ordinality as d (deadline, position)
left join timer t on t.run_key = r.run_key and t.kind = 'deadline' and t.task_index = d.position - 1
left join lateral (
    select (detail ->> 'due_at')::timestamptz as due_at from run_event
    where run_key = r.run_key and event = 'deadline_missed' and detail ->> 'deadline' = d.deadline ->> 'name'
    order by at limit 1
) as m on true
cross join lateral (
    select coalesce(m.due_at, t.due_at, case when d.deadline ->> 'reference' <> 'average_runtime' then
        due_of_deadline(d.deadline, r.dag_id, r.created_at, r.logical_date, r.run_after) end) as due_at
) as x
where r.run_key = %(run_key)s and x.due_at is not null
order by d.position
