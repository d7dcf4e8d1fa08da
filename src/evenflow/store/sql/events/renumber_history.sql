-- History that came from another server: rows with a number that is still to come here get the number of this transaction, for
-- exports. The position that exports have told retention is not ahead of it either, or no export from here would count (insights:
-- tell_exported).
with of_tasks as (
    update task_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
), told as (
    update exported set past = least(past, pg_current_xact_id()::text::bigint)
)
update run_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
