-- This database knows less than services have seen: whatever they hold is void. All services are lost, also those with only
-- unclaimed tries; every try in flight belongs to a lost one, so that schedulers send it again with a fresh epoch. Numbers continue
-- behind all that may have been given out since: at most a million epochs and one service begin in a second, so the clock is ahead
-- of them. Where this server's clock is behind that of the one before, a billion more than the highest known number is ahead.
-- Reports and wakes of runs bear the number of this transaction: the numbers of their old server mean nothing here.
with begun as (
    insert into incarnation (incarnation, reason, began_by, went_back)
    select greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, coalesce(max(incarnation), 0) + 1), %(reason)s, %(by)s,
        %(went_back)s
    from incarnation
    returning incarnation
), nobody as (
    insert into service (kind, name, host, pid, version, state)
    values ('worker', 'that nobody remembers', 'unknown', 0, '', 'lost')
    returning service_id
), lost as (
    update service set state = 'lost' where state in ('active', 'draining')
), taken as (
    update dispatch set worker_id = nobody.service_id, claimed_at = now() from nobody where worker_id is null returning epoch
), said as (
    update report set xact = pg_current_xact_id()
), woken as (
    update run_wake set xact = pg_current_xact_id()
)
select begun.incarnation,
       setval('epoch_seq',
           greatest((select last_value + 1000000000 from epoch_seq), (extract(epoch from clock_timestamp()) * 1000000)::bigint)),
       setval(pg_get_serial_sequence('service', 'service_id'),
              greatest((select max(service_id) from service), nobody.service_id, extract(epoch from clock_timestamp())::bigint))
from begun, nobody
