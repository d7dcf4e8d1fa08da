-- The migration of this transaction is applied.
insert into schema_version (version, name) values (%(version)s, %(name)s)
