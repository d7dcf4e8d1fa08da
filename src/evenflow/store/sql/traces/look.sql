-- Runs that have ended since the look before, whatever the order in which transactions began and ended, in the transaction that
-- says how far was looked. Of what ended too long ago nothing is told, nor of another history of this database: a look begins with
-- now.
with look as materialized (
    select snapshot, pg_snapshot_xmin(snapshot)::text::bigint as oldest
    from trace_look
    where pg_snapshot_xmax(snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
), looked as (
    update trace_look set snapshot = pg_current_snapshot()
)
insert into trace_due (run_key, ended_at)
select e.run_key, e.at
from look
join run_event e on e.xact >= look.oldest
join dag_run r using (run_key)
where e.event in ('succeed', 'fail', 'cancel') and e.at > now() - make_interval(secs => %(age_s)s)
    and not pg_visible_in_snapshot(e.xact::text::xid8, look.snapshot) and r.run_type <> 'callback'
on conflict do nothing
