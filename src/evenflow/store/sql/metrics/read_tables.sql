-- Rows of hot tables, living and dead, as the statistics estimate them.
select relname::text, n_live_tup, n_dead_tup from pg_stat_user_tables
where schemaname = current_schema() and relname = any(%(tables)s::text[])
order by relname
