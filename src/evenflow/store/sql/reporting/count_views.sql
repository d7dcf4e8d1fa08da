-- How many views a schema of reports has.
select count(*)::int from pg_views where schemaname = %(schema)s
