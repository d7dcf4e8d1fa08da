-- Runs, the newest first: of one DAG or all but callbacks, in one state or any, or one run by name.
select r.run_key, r.dag_id, r.run_id, r.state::text, r.run_type, v.version_number, r.params, r.priority, r.run_after, r.logical_date,
       r.data_interval_start, r.data_interval_end, r.created_at, r.started_at, r.ended_at, r.reason, r.cancelled_by, r.note, r.backfill_id,
       extract(epoch from coalesce(r.ended_at, now()) - r.started_at)::float8 as elapsed_s,
       exists (select from report p where p.run_key = r.run_key and p.kind = 'operate') as is_being_changed,
       (select q.reason from quarantine q where r.quarantined_at is not null and q.run_key = r.run_key) as quarantine
from dag_run r
join dag_version v on v.version_key = r.version_key
where (r.dag_id = %(dag_id)s or %(dag_id)s::text is null and r.run_type <> 'callback')
  and (%(run_id)s::text is null or r.run_id = %(run_id)s)
  and (%(state)s::run_state is null or r.state = %(state)s::run_state)
  and (%(scope)s::jsonb is null or r.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
order by r.run_key desc
limit %(limit)s offset %(offset)s
