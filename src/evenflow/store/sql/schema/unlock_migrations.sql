-- The next one may migrate.
select pg_advisory_unlock(7311146993655181)
