-- What waits too long, and of too many the oldest.
delete from trace_due
where ended_at <= greatest(now() - make_interval(secs => %(age_s)s),
                           (select ended_at from trace_due order by ended_at desc offset %(most)s limit 1))
