-- Pausing stops new runs and tasks of the DAG, unpausing says too when the next scheduled run is due. What else was said of the
-- DAG's state of service is void.
with plain as (delete from service_state where kind = 'dag' and name = %(dag_id)s)
update dag set is_paused = %(is_paused)s, paused_reason = null, next_run_at = %(next_run_at)s, next_logical = %(next_logical)s,
               wants_forecast = %(wants_forecast)s, updated_at = now()
where dag_id = %(dag_id)s
