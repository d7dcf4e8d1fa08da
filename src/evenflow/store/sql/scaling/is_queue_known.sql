-- Whether a fleet, an executor or a DAG names this queue. Specs of DAGs are read last: a queue of which a task was ever ready has
-- limit classes. Tasks that name none have the queue "default".
select case
    when %(queue)s = 'default' then true
    when exists (select from fleet where %(queue)s = any (queues)) then true
    when exists (select from queue_executor where queue = %(queue)s) then true
    when exists (select from limit_class where queue = %(queue)s) then true
    else exists (
        select from dag
        join dag_version v using (version_key)
        cross join lateral jsonb_array_elements(v.spec -> 'tasks') as t (task)
        where t.task ->> 'queue' = %(queue)s)
end
