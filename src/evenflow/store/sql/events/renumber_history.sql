-- History that came from another server: what bears a number that is still to come here gets that of this transaction, for exports. What these have
-- told retention does not go on behind it either, or no export from here would count (insights: tell_exported).
with of_tasks as (
    update task_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
), told as (
    update exported set past = least(past, pg_current_xact_id()::text::bigint)
)
update run_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
