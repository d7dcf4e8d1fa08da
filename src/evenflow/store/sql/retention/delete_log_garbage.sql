-- Logs that are deleted now.
delete from log_garbage g
using unnest(%(dag_ids)s::text[], %(run_ids)s::text[]) as d (dag_id, run_id)
where g.dag_id = d.dag_id and g.run_id = d.run_id
