-- What was done with a fleet, the newest plan first.
select s.plan, s.step, s.detail, s.at, s.done_at, s.open
from scaling_step s
where s.fleet = %(fleet)s
order by s.plan desc, s.step_id
limit %(limit)s offset %(offset)s
