-- DAGs that were paused or unpaused since the last look.
update dag set pause_applied = is_paused where is_paused <> pause_applied returning dag_id, is_paused
