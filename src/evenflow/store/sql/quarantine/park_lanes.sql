-- The lanes of runs in quarantine are parked as such; their limits are woken for the lanes behind them.
with parked as (
    update lane set parked_on = -3
    where run_key = any(%(run_keys)s::bigint[]) and parked_on <> -3
    returning class_id, locals
)
insert into wake (limit_id, released)
select unnest(locals), 0 from parked
union
select n.task_limit, 0 from parked join limit_class n using (class_id) where n.task_limit is not null
