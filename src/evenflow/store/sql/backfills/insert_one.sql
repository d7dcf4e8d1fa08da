-- A backfill; answers nothing when the DAG has one that is not over. Two that come at once are kept apart by the lock of their DAG.
with free as (
    select dag_id from dag where dag_id = %(dag_id)s for no key update
)
insert into backfill (dag_id, from_date, to_date, partitions_of, is_reversed, reprocess, max_active_runs, params, priority,
    created_by)
select dag_id, %(from_date)s, %(to_date)s, %(partitions_of)s, %(reverse)s, %(reprocess)s, %(max_active_runs)s, %(params)s::jsonb,
       %(priority)s, %(actor)s
from free
where not exists (select from backfill b where b.dag_id = free.dag_id and b.ended_at is null)
returning backfill_id
