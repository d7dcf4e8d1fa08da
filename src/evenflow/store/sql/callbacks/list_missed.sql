-- The deadlines that a run has missed.
select detail ->> 'deadline' as name, (detail ->> 'due_at')::timestamptz as due_at
from run_event
where run_key = %(run_key)s and event = 'deadline_missed'
order by at
