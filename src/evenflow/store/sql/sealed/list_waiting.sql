-- What is sealed of tries that wait or have returned, and of what task instances store once; neither is a value that somebody set.
select 'deferral' as source, run_key, task_index, map_index, '' as name, sealed, event from deferral
union all
select 'once', run_key, task_index, map_index, name, sealed, null from once_value where sealed is not null
