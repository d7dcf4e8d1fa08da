-- Wakes schedulers and all who wait for work, when this transaction commits.
select pg_notify(channel, '') from unnest(%(channels)s::text[]) as channel
