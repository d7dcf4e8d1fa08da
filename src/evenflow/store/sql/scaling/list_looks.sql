-- What was seen of a fleet since then, the newest first.
select extract(epoch from at)::float8 as at, running, waiting, expected, oldest_wait, duration, replicas, others, ready, asked, reason
from scaling_look
where fleet = %(fleet)s and at >= to_timestamp(%(since)s)
order by at desc
limit %(limit)s offset %(offset)s
