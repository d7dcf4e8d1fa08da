-- The exempt lanes of closed pools, executors and queues, the best first: those that are open, woken, or parked on a limit that has
-- room or that this transaction has released. There are few: teardowns, callbacks and resumes, as far as a limit held them back.
select {{stored_lane}}
from lane l
join limit_class n using (class_id)
left join concurrency_limit c on c.limit_id = l.parked_on
where l.exempt and l.parked_on not in (-1, -3)
  and (n.pool_limit = any(%(closed)s::bigint[]) or n.executor_limit = any(%(closed)s::bigint[])
      or n.queue = any(%(closed_queues)s::text[]))
  and (l.parked_on <= 0 or c.used < c.capacity or l.parked_on = any(%(released)s::bigint[]))
order by l.order_key
limit %(limit)s
