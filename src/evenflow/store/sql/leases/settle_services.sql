-- Services that went a while ago and have left nothing: they are not looked at again. A claim locks its service while that is
-- active, so no claim comes after its end; the while is for transactions that began before. SKIP LOCKED: the transaction that has
-- locked one does the same.
update service s
set settled = true
where service_id in (
    select service_id
    from service g
    where g.state in ('lost', 'stopped') and not g.settled and g.beat_at < now() - make_interval(secs => %(after)s)
      and not exists (select from dispatch d where d.worker_id = g.service_id)
      and not exists (select from deferral f where f.triggerer_id = g.service_id)
    order by g.kind, g.service_id
    limit %(limit)s
    for no key update skip locked)
