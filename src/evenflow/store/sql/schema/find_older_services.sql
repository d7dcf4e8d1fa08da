-- Programs with a database that are alive and do not know the schema that is asked for. Read as JSON, for the column came later
-- than the table: what wrote its row before knows an older one.
select kind, name, host, version, coalesce((to_jsonb(s) ->> 'schema_known')::int, 0) as known
from service s
where kind in ('scheduler', 'api') and {{is_healthy}}
  and coalesce((to_jsonb(s) ->> 'schema_known')::int, 0) < %(works_from)s
order by kind, name
