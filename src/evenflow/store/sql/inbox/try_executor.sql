-- The executor's lock, for the rest of the transaction: who has it runs rounds and writes limits. Nobody waits for it; the loser leaves
-- its wakes to the winner. Taken before every other lock. Answers too what time it is.
select pg_try_advisory_xact_lock(%(executor)s) as lead, now() as now
