-- The DAG of what is set aside, "q", of the run "r", if it is one, and of the backfill "b".
case q.kind when 'run' then r.dag_id when 'backfill' then b.dag_id else q.object end
