-- Lanes that have emptied.
delete from lane where lane_id = any(%(lanes)s::bigint[])
