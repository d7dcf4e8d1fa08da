-- Whether the run "r" is asked for: of one DAG or of all but callbacks, in one state or any, or one run by name; only those before
-- that of the place.
(r.dag_id = %(dag_id)s or %(dag_id)s::text is null and r.run_type <> 'callback')
  and (%(run_id)s::text is null or r.run_id = %(run_id)s)
  and (%(state)s::run_state is null or r.state = %(state)s::run_state)
  and (%(after)s::jsonb is null or r.run_key < (%(after)s::jsonb ->> 0)::bigint)
