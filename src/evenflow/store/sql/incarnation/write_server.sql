-- The server that has this database from now on. Answers nothing when another session has written it meanwhile: that session then
-- does all that follows from it.
insert into database_server (system_id, timeline) values (%(system_id)s, %(timeline)s)
on conflict (singleton) do update
set system_id = excluded.system_id, timeline = excluded.timeline, seen_at = now()
where (database_server.system_id, database_server.timeline) is distinct from (excluded.system_id, excluded.timeline)
returning timeline
