-- Deletes dates of backfills that ended before an instant, up to a limit, and such backfills when their dates have gone.
with old as materialized (
    select b.backfill_id
    from backfill b
    where b.ended_at < %(before)s
      and not exists (select from dag_run r where r.backfill_id = b.backfill_id and r.state in ('queued', 'running'))
    order by b.backfill_id
    limit 100
), dates as (
    delete from backfill_run
    where ctid = any(array(
        select f.ctid from old join backfill_run f using (backfill_id) limit %(limit)s))
    returning 1
), gone as (
    delete from backfill b using old o
    where b.backfill_id = o.backfill_id and not exists (select from backfill_run f where f.backfill_id = o.backfill_id)
    returning 1
)
select (select count(*) from dates)::int + (select count(*) from gone)::int
