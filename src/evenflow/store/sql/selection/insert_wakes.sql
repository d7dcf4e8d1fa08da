-- Releases for the holder of the executor's lock to fold; released 0 only says that lanes opened.
insert into wake (limit_id, released) select * from unnest(%(limits)s::bigint[], %(released)s::int[])
