-- What is asked of a new version's tasks one by one, in the order of the spec.
insert into task (version_key, task_index, task_id, operator, execution_timeout_s, queued_timeout_s, other_queue)
select %(version_key)s, position - 1, task_id, operator, execution_timeout_s, queued_timeout_s, other_queue
from unnest(%(task_ids)s::text[], %(operators)s::text[], %(execution_timeouts)s::float8[], %(queued_timeouts)s::float8[],
    %(other_queues)s::text[])
     with ordinality as t (task_id, operator, execution_timeout_s, queued_timeout_s, other_queue, position)
