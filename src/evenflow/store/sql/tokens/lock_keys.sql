-- One changes the keys at a time; the lock is freed at the end of the transaction. The number is "evenflow" as
-- schema/lock_migrations has it, and one.
select pg_advisory_xact_lock(7311146993655182)
