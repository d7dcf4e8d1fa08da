-- One migrates at a time; the lock is the session's, so that it holds from one migration's transaction to the next. The number is
-- "evenflow" cut to what a bigint holds.
select pg_advisory_lock(7311146993655181)
