-- The next open or woken lanes of a limit class. What a transaction reads of it does not change before it writes.
select {{stored_lane}}
from lane l
where parked_on = %(parked_on)s and parked_on in (0, -2) and class_id = %(queue)s
order by order_key
limit %(limit)s offset %(seen)s
