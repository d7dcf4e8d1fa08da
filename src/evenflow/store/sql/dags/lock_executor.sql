-- The executor's lock, for the rest of the transaction: until then no round runs and no run begins. A transaction that
-- changes limits waits for the lock; schedulers only try it, and leave their wakes meanwhile.
select pg_advisory_xact_lock(%(executor)s)
