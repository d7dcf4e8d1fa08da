-- Backfills that are not through.
select id, dag_id from backfill where completed_at is null order by id
