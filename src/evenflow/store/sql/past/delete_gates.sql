-- Gates that are open.
with opened as (
    delete from past_gate where run_key = any(%(run_keys)s::bigint[]) and missing <= 0 returning run_key, task_index
)
delete from past_hold h using opened o where h.run_key = o.run_key and h.task_index = o.task_index
