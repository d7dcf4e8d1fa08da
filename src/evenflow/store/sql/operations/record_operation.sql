-- What a person did with a run, for its history.
insert into run_event (run_key, event, state, actor, detail)
values (%(run_key)s, %(event)s, %(state)s::run_state, %(actor)s, %(detail)s::jsonb)
