-- What is left of the untouched instances that these lanes stand for. Under the executor's lock.
update lane l set ready = l.ready - (l.end_map_index - l.next_map_index) + (c.past - c.first), next_map_index = c.first,
    end_map_index = c.past
from unnest(%(lanes)s::bigint[], %(first)s::int[], %(past)s::int[]) as c (lane_id, first, past)
where l.lane_id = c.lane_id
