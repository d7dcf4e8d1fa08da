-- What labels are made of, of these tasks: DAG, task, and the tags of the DAG.
select k.version_key, k.task_index, v.dag_id, t.task_id, coalesce(v.outline -> 'tags', '[]') as tags
from unnest(%(version_keys)s::bigint[], %(task_indexes)s::int[]) as k (version_key, task_index)
join dag_version v using (version_key)
join task t using (version_key, task_index)
