-- Null when no migration was ever applied here.
select to_regclass('schema_version')
