-- The executor's lock, for the rest of the transaction: who has it runs rounds and writes limits. Nobody waits for it; the loser leaves
-- its wakes to the winner. Taken before every other lock. Answers too what time it is, and whether a round follows at once.
select pg_try_advisory_xact_lock(%(executor)s) as lead, extract(epoch from now())::float8 as now_s,
       coalesce((select value = 'true' from setting where name = 'fast_follow'), true) as fast_follow
