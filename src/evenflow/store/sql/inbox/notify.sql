-- Wakes who listens, when this transaction commits.
select pg_notify(%(channel)s, '')
