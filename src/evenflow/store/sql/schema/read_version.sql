-- The newest migration that was applied, the schema that a program must know to work here, and what the database began as. Read as
-- JSON, for the column came later than the table.
select coalesce(max(version), 0), coalesce(max((to_jsonb(s) ->> 'works_from')::int), 0),
    coalesce((array_agg(name order by version))[1], '')
from schema_version s
