-- Deadlines that these runs have missed, for their history.
insert into run_event (run_key, event, state, actor, detail)
select c.run_key, 'deadline_missed', r.state, 'scheduler',
    jsonb_build_object('deadline', c.name, 'due_at', to_timestamp(c.due_at_s))
from unnest(%(run_keys)s::bigint[], %(names)s::text[], %(due_at_s)s::float8[]) as c (run_key, name, due_at_s)
join dag_run r on r.run_key = c.run_key
