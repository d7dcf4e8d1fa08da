-- Whether the service "s" lives: it has beaten within its lease, and has not stopped.
s.state in ('active', 'draining') and s.beat_at > now() - make_interval(secs => %(lease_s)s)
