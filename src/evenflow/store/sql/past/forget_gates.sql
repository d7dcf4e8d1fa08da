-- The gates of a run and what it watches for them go; answers what they held.
with watches as (
    delete from past_watch where waiter_run = %(run_key)s
), gates as (
    delete from past_gate where run_key = %(run_key)s
)
delete from past_hold where run_key = %(run_key)s returning task_index, map_index
