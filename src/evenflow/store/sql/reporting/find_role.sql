-- Whether there is a role of this name.
select from pg_roles where rolname = %(role)s
