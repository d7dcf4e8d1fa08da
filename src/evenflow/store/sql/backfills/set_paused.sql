-- Whether a backfill makes runs.
update backfill set is_paused = %(is_paused)s where backfill_id = %(backfill_id)s and ended_at is null
