-- Whether there is such an object in a scope. A queue is one that a task or a worker has named.
select case %(kind)s::text
    when 'dag' then exists (select from dag where dag_id = %(name)s
        and (%(scope)s::jsonb is null or dag_id in (select dags_in_scope(%(scope)s::jsonb))))
    when 'pool' then exists (select from pool where name = %(name)s and in_scope(%(scope)s::jsonb, 'pools', name))
    when 'queue' then in_scope(%(scope)s::jsonb, 'queues', %(name)s) and (
        exists (select from limit_class where queue = %(name)s)
        or exists (select from service where kind = 'worker' and detail -> 'queues' ? %(name)s)
        or exists (
            select from dag d
            join dag_version v using (version_key)
            cross join lateral jsonb_array_elements(v.spec -> 'tasks') as task
            where d.is_active and coalesce(task ->> 'queue', 'default') = %(name)s))
    when 'worker' then exists (select from service where kind = 'worker' and name = %(name)s)
    else %(name)s = 'all'
end as found
