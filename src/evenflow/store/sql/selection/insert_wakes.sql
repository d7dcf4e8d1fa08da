-- Releases for the holder of the executor's lock to fold; released 0 only says that lanes opened.
insert into wake (limit_id, released, at)
select limit_id, released, to_timestamp(at_s)
from unnest(%(limits)s::bigint[], %(released)s::int[], %(at)s::float8[]) as w (limit_id, released, at_s)
