-- Programs must know this schema from now on.
update schema_version set works_from = %(works_from)s where version = %(version)s
