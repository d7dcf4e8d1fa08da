-- What was seen of a fleet, if it is still there: FOR KEY SHARE waits for a fleet that is about to be deleted, as the reference of
-- the row would do, and then finds none. Two looks at one moment are one.
insert into scaling_look (fleet, at, running, aside, waiting, expected, oldest_wait, duration, replicas,
                          out_of_service, others, ready, asked, reason)
select name, to_timestamp(%(at)s), %(running)s, %(aside)s, %(waiting)s, %(expected)s, %(oldest_wait)s, %(duration)s, %(replicas)s,
       %(out_of_service)s, %(others)s, %(ready)s, %(asked)s, %(reason)s
from fleet
where name = %(fleet)s
for key share
on conflict do nothing
