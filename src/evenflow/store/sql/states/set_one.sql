-- Something takes on less than everything. A state that it has already keeps its beginning.
insert into service_state as s (kind, name, state, actor, deadline)
values (%(kind)s, %(name)s, %(state)s, %(actor)s, now() + make_interval(secs => %(within_s)s::float8))
on conflict (kind, name) do update
set state = excluded.state, actor = excluded.actor, deadline = excluded.deadline, reason = null,
    since = case when s.state = excluded.state then s.since else now() end
