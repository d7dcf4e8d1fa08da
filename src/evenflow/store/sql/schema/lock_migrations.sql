-- One migrates at a time; the lock is freed at the end of the transaction. The number is "evenflow" cut to what a bigint holds.
select pg_advisory_xact_lock(7311146993655181)
