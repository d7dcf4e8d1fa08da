-- What was seen of a fleet since then, the newest first.
select jsonb_build_array(at) as place, extract(epoch from at)::float8 as at, running, aside, waiting, expected, oldest_wait,
    duration, replicas, out_of_service, others, ready, asked, reason
from scaling_look
where fleet = %(fleet)s and at >= to_timestamp(%(since)s)
  and (%(after)s::jsonb is null or at < (%(after)s::jsonb ->> 0)::timestamptz)
order by scaling_look.at desc
limit %(limit)s
