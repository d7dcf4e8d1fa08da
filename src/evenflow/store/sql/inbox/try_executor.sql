-- The executor's lock, for the rest of the transaction. Its holder runs rounds and writes limits. No scheduler waits for it; the
-- loser leaves its wakes to the winner. Taken before every other lock, and in a statement of its own: only a snapshot that is
-- younger than the lock sees what the last holder left. The transaction remembers the answer for inbox/lock_runs, which is sent
-- before it is here.
select set_config('evenflow.lead', pg_try_advisory_xact_lock(%(executor)s)::text, true)::boolean as lead
