-- History of runs: one row per move.
insert into run_event (run_key, event, state, actor)
select * from unnest(%(run_keys)s::bigint[], %(events)s::text[], %(states)s::run_state[], %(actors)s::text[])
