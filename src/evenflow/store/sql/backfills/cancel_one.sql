-- The end of a backfill: it makes no further runs, and its runs that have not begun are cancelled. Its running runs continue.
with ended as (
    update backfill set ended_at = now(), cancelled_by = %(actor)s where backfill_id = %(backfill_id)s and ended_at is null
    returning backfill_id
)
insert into report (run_key, kind, epoch, payload)
select r.run_key, 'cancel', 0, jsonb_build_object('actor', %(actor)s::text)
from ended
join dag_run r using (backfill_id)
where r.state = 'queued'
