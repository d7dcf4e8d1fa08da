-- The newest migration that was applied, and the schema that a program must know to work here. Read as JSON, for the column came later
-- than the table.
select coalesce(max(version), 0), coalesce(max((to_jsonb(s) ->> 'works_from')::int), 0) from schema_version s
