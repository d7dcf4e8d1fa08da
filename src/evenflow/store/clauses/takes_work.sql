-- Whether the service "s" lives and takes on something new.
s.state = 'active' and s.beat_at > now() - make_interval(secs => %(lease_s)s)
