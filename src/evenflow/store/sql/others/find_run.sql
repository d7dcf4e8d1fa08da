-- The run of this name or logical date, whether this task instance triggered or reset it, whether it triggered it before a person
-- cleared the task, and its state: a reset that is not applied yet counts as queued.
select r.run_key, r.run_id,
       case when exists (select from report where report.run_key = r.run_key and kind = 'operate') then 'queued'
           else r.state::text end as state,
       exists (select from run_event e where e.run_key = r.run_key and e.asker = %(asker)s::jsonb) as is_own,
       exists (select from run_event e
               where e.run_key = r.run_key and e.event = 'triggered'
                   and e.asker - 'tries_before' = %(asker)s::jsonb - 'tries_before') as is_made
from dag_run r
where r.dag_id = %(dag_id)s and (r.run_id = %(run_id)s or r.logical_date = %(logical_date)s::timestamptz)
order by r.run_id <> %(run_id)s
limit 1
