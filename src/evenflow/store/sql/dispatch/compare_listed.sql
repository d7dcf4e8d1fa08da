-- Where a worker's list of its tries and ours differ: tries to kill (no longer its own, or to be ended), and tries to send again
-- (claimed a while ago, not listed, and no report of them waits to be applied). Also which of the listed tries are to be marked as
-- started, should they run: a row of its own tells that once. MATERIALIZED and the subquery with a limit: the plan may be older
-- than the rows, and a full join by epoch or a hash of the inbox looks good on empty tables.
with own as materialized (
    select epoch, run_key, claimed_at, kill, not started
        and claimed_at < now() - make_interval(secs => %(unmarked_after_s)s) as unmarked from dispatch
    where worker_id = %(service_id)s
)
select coalesce(d.epoch, l.epoch) as epoch,
       coalesce(d.kill, true) as kill,
       l.epoch is null as resend,
       d.epoch is null as revoked,
       l.epoch is not null and coalesce(d.unmarked, false) as unmarked
from own d
full join unnest(%(epochs)s::bigint[]) as l (epoch) on l.epoch = d.epoch
where d.epoch is null
   or (l.epoch is not null and (d.kill or d.unmarked))
   or (l.epoch is null and d.claimed_at < now() - make_interval(secs => %(resend_after_s)s)
       and (select true from report r where r.run_key = d.run_key and r.epoch = d.epoch limit 1) is null)
