-- Whether the worker "s" lives and may be given tries: as the clause takes_work, and no fence is up around it.
s.kind = 'worker' and s.state = 'active' and s.beat_at > now() - make_interval(secs => %(lease_s)s)
  and (s.fence_until > now()) is not true
