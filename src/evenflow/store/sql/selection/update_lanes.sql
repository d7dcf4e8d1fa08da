-- Lanes after a round: where they stand and what is left of them.
update lane l set parked_on = c.parked_on, ready = c.ready, next_map_index = c.next_map_index
from unnest(%(lanes)s::bigint[], %(parked)s::bigint[], %(ready)s::int[], %(next)s::int[]) as c (lane_id, parked_on, ready,
    next_map_index)
where l.lane_id = c.lane_id
