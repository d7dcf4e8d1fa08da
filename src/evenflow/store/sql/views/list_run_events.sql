-- What happened to a run, the oldest first.
select at, event, state::text, actor, detail from run_event where run_key = %(run_key)s order by at limit %(limit)s offset %(offset)s
