-- What a list tells of the run "r", of the version "v": the columns of RunSummary.
r.run_key, jsonb_build_array(r.run_key) as place, r.dag_id, r.run_id, r.state::text, r.run_type, v.version_number, r.params,
    r.priority, r.run_after, r.logical_date,
       r.data_interval_start, r.data_interval_end, r.created_at, r.started_at, r.ended_at, r.reason, r.cancelled_by, r.note,
           r.backfill_id,
       extract(epoch from coalesce(r.ended_at, now()) - r.started_at)::float8 as elapsed_s,
       exists (select from report p where p.run_key = r.run_key and p.kind = 'operate') as is_being_changed,
       (select q.reason from quarantine q where r.quarantined_at is not null and q.run_key = r.run_key) as quarantine
