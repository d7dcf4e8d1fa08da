-- What the settings say of limits that are no pools.
select coalesce((select value = 'true' from setting where name = 'deferred_keep_task_limits'), true) as task_limits,
       coalesce((select value = 'true' from setting where name = 'deferred_keep_run_cap'), false) as run,
       coalesce((select value = 'true' from setting where name = 'deferred_keep_executor_slot'), false) as executor
