-- What more of a limit would have been worth: with N more slots, the first N slots that waited for it at each moment would not have waited.
-- What they would have taken from others later is not in it. By limit and day.
with edge as (
    select cause, limit_name, began_us as us, pool_slots as waiting from segments where cause in ('pool', 'run cap', 'task cap', 'executor')
    union all
    select cause, limit_name, began_us + us, -pool_slots from segments where cause in ('pool', 'run cap', 'task cap', 'executor')
), moment as (
    select cause, limit_name, us, sum(waiting) as waiting from edge group by cause, limit_name, us
), placed as (
    select cause, limit_name, us, waiting, cast(floor(us / 86400000000) as bigint) as day from moment
), of_day as (
    select cause, limit_name, day, sum(waiting) as waiting from placed group by cause, limit_name, day
), at_begin as (
    select cause, limit_name, day,
           sum(waiting) over (partition by cause, limit_name order by day rows between unbounded preceding and current row) - waiting as waiting
    from of_day
), depth as (
    select p.cause, p.limit_name, p.day, p.us,
           b.waiting + sum(p.waiting) over (partition by p.cause, p.limit_name, p.day order by p.us rows between unbounded preceding and current row) as waiting,
           lead(p.us) over (partition by p.cause, p.limit_name, p.day order by p.us) as next_us
    from placed p
    join at_begin b on b.cause = p.cause and b.limit_name = p.limit_name and b.day = p.day
), stay as (
    select cause, limit_name, day, waiting, least(coalesce(next_us, (day + 1) * 86400000000), (day + 1) * 86400000000) - us as us from depth where waiting > 0
)
select s.cause, s.limit_name, s.day, m.more, sum(least(s.waiting, m.more) * s.us) as saved_us, sum(s.waiting * s.us) as wait_us
from stay s
cross join (values (1), (2), (4), (8), (16)) as m (more)
group by s.cause, s.limit_name, s.day, m.more
