-- Up to where a DAG counts as scheduled, and its next run after that. It is locked.
update dag set last_logical = %(last_logical)s, last_interval_end = %(last_interval_end)s,
               next_run_at = %(next_run_at)s, next_logical = %(next_logical)s, wants_forecast = %(wants_forecast)s,
               updated_at = now()
where dag_id = %(dag_id)s
