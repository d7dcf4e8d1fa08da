-- Asks the schedulers to end a run.
insert into report (run_key, kind, epoch, payload) values (%(run_key)s, 'cancel', 0, jsonb_build_object('actor', %(actor)s::text))
