-- The executor's lock, for the rest of the transaction: until then no round runs and no run begins. Who wants to change limits waits for
-- it; schedulers, who only try, leave their wakes meanwhile.
select pg_advisory_xact_lock(%(executor)s)
