-- What is not simply active: all of it, or of one kind, or one object. DAGs that are only paused are left out unless asked for.
select *
from (
    select kind, name, state, since, actor, deadline, reason from service_state where kind <> 'dag'
    union all
    select 'dag', d.dag_id, case when d.is_paused then coalesce(nullif(s.state, 'draining'), 'paused') else s.state end, s.since,
        s.actor,
           s.deadline, coalesce(d.paused_reason, s.reason)
    from dag d
    left join service_state s on s.kind = 'dag' and s.name = d.dag_id
    where d.is_paused or s.name is not null
) as x
where (%(kind)s::text is null or kind = %(kind)s) and (%(name)s::text is null or name = %(name)s)
  and (%(paused_dags)s or kind <> 'dag' or state <> 'paused')
  and case kind
          when 'dag' then (%(scope)s::jsonb is null or name in (select dags_in_scope(%(scope)s::jsonb)))
          when 'pool' then in_scope(%(scope)s::jsonb, 'pools', name)
          when 'queue' then in_scope(%(scope)s::jsonb, 'queues', name)
          else true
      end
order by kind, name
limit %(limit)s
