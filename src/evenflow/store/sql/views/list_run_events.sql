-- What happened to a run, the oldest first.
select jsonb_build_array(at, xact, event) as place, at, event, state::text, actor, detail
from run_event
where run_key = %(run_key)s
    and (%(after)s::jsonb is null
    or (at, xact, event) > ((%(after)s::jsonb ->> 0)::timestamptz, (%(after)s::jsonb ->> 1)::bigint, %(after)s::jsonb ->> 2))
order by at, xact, event
limit %(limit)s
