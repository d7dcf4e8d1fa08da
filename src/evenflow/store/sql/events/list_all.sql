-- What people changed, the newest first. A kind of action is what stands before its dot; an object names also what is below it (the
-- runs of a DAG). The text is in the order of its bytes, where / comes right before 0.
select jsonb_build_array(event_id) as place, event_id, at, actor, action, object, detail, token_id, address, request_id, times,
    last_at
from audit_event
where (%(actor)s::text is null or actor = %(actor)s)
  and (%(action)s::text is null or action = %(action)s or split_part(action, '.', 1) = %(action)s)
  and (%(object)s::text is null
       or (object >= %(object)s and object < %(object)s || '0' and (object = %(object)s or starts_with(object, %(object)s || '/'))))
  and (%(scope)s::jsonb is null
       or split_part(action, '.', 1) in ('dag', 'run', 'task', 'backfill')
          and split_part(object, '/', 1) in (select dags_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or event_id < (%(after)s::jsonb ->> 0)::bigint)
order by event_id desc
limit %(limit)s
