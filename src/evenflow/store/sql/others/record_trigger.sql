-- A task has made this run: in the run's history, which task.
insert into run_event (run_key, event, state, actor, asker)
values (%(run_key)s, 'triggered', 'queued', %(actor)s, %(asker)s::jsonb)
