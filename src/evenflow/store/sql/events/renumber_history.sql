-- History that came from another server: what bears a number that is still to come here gets that of this transaction, for exports.
with of_tasks as (
    update task_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
)
update run_event set xact = pg_current_xact_id()::text::bigint where xact > pg_current_xact_id()::text::bigint
