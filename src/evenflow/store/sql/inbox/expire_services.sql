-- Services whose lease has lapsed. A worker that comes back registers anew.
update service set state = 'lost'
where state in ('active', 'draining') and beat_at < now() - make_interval(secs => %(lease_s)s)
returning service_id, kind, name
