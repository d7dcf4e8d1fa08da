-- What happened to a run, the oldest first.
select at, xact, event, state::text from run_event where run_key = %(run_key)s order by at, xact
