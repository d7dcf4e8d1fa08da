-- Whether service s was a worker of a fleet that has as many as it is to have. Workers of a fleet are called after it, or after its
-- Deployment. Fleets are few.
exists (
    select from fleet f
    where s.kind = 'worker' and starts_with(s.name, coalesce(f.options ->> 'deployment', f.name) || '-')
      and s.detail -> 'queues' ?| f.queues
      and f.replicas <= (
          select count(*)
          from service o
          where o.kind = 'worker' and o.state = 'active' and o.beat_at > now() - make_interval(secs => %(lease_s)s)
            and starts_with(o.name, coalesce(f.options ->> 'deployment', f.name) || '-') and o.detail -> 'queues' ?| f.queues))
