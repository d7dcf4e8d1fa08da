-- Locks the rows of these DAGs, in one order for all. When runs of a DAG end in two schedulers at the same time, one looks at the
-- DAG after the other.
select dag_id from dag where dag_id = any(%(dag_ids)s::text[]) order by dag_id for no key update
