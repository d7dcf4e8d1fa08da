-- What was done with a fleet, the newest plan first.
select jsonb_build_array(s.plan, s.step_id) as place, s.plan, s.step, s.detail, s.at, s.done_at, s.open
from scaling_step s
where s.fleet = %(fleet)s
  and (%(after)s::jsonb is null or s.plan <= (%(after)s::jsonb ->> 0)::bigint
      and (s.plan < (%(after)s::jsonb ->> 0)::bigint or s.step_id > (%(after)s::jsonb ->> 1)::bigint))
order by s.plan desc, s.step_id
limit %(limit)s
