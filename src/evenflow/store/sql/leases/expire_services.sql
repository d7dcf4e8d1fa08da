-- Services that were heard of last before this instant. A worker that comes back registers anew.
update service set state = 'lost'
where state in ('active', 'draining') and beat_at < to_timestamp(%(before)s)
returning service_id, kind, name
