-- Retires DAGs that this file defined before and does not define now. Their runs continue.
update dag set is_active = false, next_run_at = null, next_logical = null, updated_at = now()
where bundle = %(bundle)s and file = %(file)s and is_active and dag_id <> all(%(dag_ids)s::text[])
returning dag_id
