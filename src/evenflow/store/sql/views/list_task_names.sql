-- The tasks of versions in their order, those of the newest version first.
select version_key, array_agg(task_id order by task_index) as task_ids
from task
where version_key = any(%(version_keys)s)
group by version_key
order by version_key desc
