-- One changes settings at a time, so that versions are in the order in which they took effect; freed at the end of the transaction.
-- Readers do not wait for this lock. The number is two above that of migrations.
select pg_advisory_xact_lock(7311146993655183)
