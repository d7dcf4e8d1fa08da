-- The executor's lock, for the rest of the transaction: nothing starts meanwhile that raises the use of a limit, and no run begins.
-- Waited for, unlike in a turn: turns follow one another without a pause, and each only tries.
select pg_advisory_xact_lock(%(executor)s)
