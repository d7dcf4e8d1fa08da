-- Locked FOR UPDATE: while its history is deleted its file does not come back.
select is_active, file from dag where dag_id = %(dag_id)s for update
