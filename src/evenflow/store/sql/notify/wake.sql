-- Wakes who listens on these channels, after the commit that they are to hear of. NOTIFY holds a lock of the whole server until its
-- transaction is committed, so transactions that write and notify wait for the disk one after the other. This one waits for no
-- disk: what a crash forgets of it, the sweep of each second finds.
select set_config('synchronous_commit', 'off', true), pg_notify(channel, '') from unnest(%(channels)s::text[]) as channel
