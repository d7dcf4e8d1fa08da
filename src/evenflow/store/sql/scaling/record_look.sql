-- What was seen of a fleet. Two looks at one moment are one.
insert into scaling_look (fleet, at, running, waiting, expected, oldest_wait, duration, replicas, others, ready, asked, reason)
values (%(fleet)s, to_timestamp(%(at)s), %(running)s, %(waiting)s, %(expected)s, %(oldest_wait)s, %(duration)s, %(replicas)s, %(others)s,
        %(ready)s, %(asked)s, %(reason)s)
on conflict do nothing
