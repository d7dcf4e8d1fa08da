-- Ends sessions of ours whose client has not read its answer for so long that it must hang, and answers whose they were: while a
-- server sends it minds none of its own timeouts, and keeps the locks of the transaction. Materialized, for the order of conditions
-- is the planner's: none that does not meet all of them may be ended.
with deaf as materialized (
    select pid, application_name
    from pg_stat_activity
    where datname = current_database() and usename = current_user and application_name like 'evenflow %%'
      and state = 'active' and wait_event = 'ClientWrite' and query_start < clock_timestamp() - make_interval(secs => %(patience)s)
)
select application_name from deaf where pg_terminate_backend(pid)
