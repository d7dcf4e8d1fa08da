-- Whether the limit class "n" can start one: its pool "p" and executor "e" have room, with what this transaction has released of
-- them ("gp", "ge"), and neither they nor its queue are closed. A pool that keeps room for tasks of several slots is
-- looked at with one.
p.capacity - p.used + coalesce(gp.n, 0) >= case when p.patience_s is null then n.weight else 1 end
  and e.capacity - e.used + coalesce(ge.n, 0) >= 1
  and n.pool_limit <> all(%(closed)s::bigint[]) and n.executor_limit <> all(%(closed)s::bigint[])
  and n.queue <> all(%(closed_queues)s::text[])
