-- The DAG's newest version. Whether it is paused is the operator's decision after the first time.
insert into dag (dag_id, version_key, bundle, file, is_paused, next_run_at, next_logical)
values (%(dag_id)s, %(version_key)s, %(bundle)s, %(file)s, %(is_paused)s, %(next_run_at)s, %(next_logical)s)
on conflict (dag_id) do update
set version_key = excluded.version_key, bundle = excluded.bundle, file = excluded.file, is_active = true,
    next_run_at = excluded.next_run_at, next_logical = excluded.next_logical, updated_at = now()
