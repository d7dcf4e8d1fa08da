-- For how much of each wait each of its limits was full. The time for which a limit had been full up to a moment is a sum over its
-- changes before: so two sums tell an interval, however many changes lie in it, and each limit is summed up hour by hour.
with asked as (
    select w.run_key, w.task_index, w.map_index, w.from_us, w.until_us,
           case when t.of_run then w.run_key else 0 end as scope, t.kind, t.name
    from waits w
    join terms t on t.version_key = w.version_key and t.task_index = w.task_index
    where w.until_us - w.from_us >= 10000
    union all
    select w.run_key, w.task_index, w.map_index, w.from_us, w.until_us, cast(0 as bigint), 'paused', w.dag_id
    from waits w
    where w.until_us - w.from_us >= 10000 and w.dag_id in (select name from toggles where kind = 'paused')
), ever_full as (
    select distinct scope, kind, name from toggles
), askable as (
    select a.run_key, a.task_index, a.map_index, a.from_us, a.until_us, a.scope, a.kind, a.name
    from asked a
    join ever_full f on f.scope = a.scope and f.kind = a.kind and f.name = a.name
), point as (
    select scope, kind, name, us, slope, cast(null as bigint) as run_key, cast(null as int) as task_index, cast(null as int) as map_index,
           cast(null as bigint) as from_us, 0 as sign
    from toggles
    union all
    select scope, kind, name, from_us, 0, run_key, task_index, map_index, from_us, -1 from askable
    union all
    select scope, kind, name, until_us, 0, run_key, task_index, map_index, from_us, 1 from askable
), placed as (
    select scope, kind, name, us, slope, run_key, task_index, map_index, from_us, sign, cast(floor(us / 3600000000) as bigint) as hour from point
), of_hour as (
    select scope, kind, name, hour, sum(slope) as slope, sum(slope * (us - hour * 3600000000)) + sum(slope) * hour * 3600000000 as moment
    from placed
    group by scope, kind, name, hour
), at_begin as (
    select scope, kind, name, hour,
           sum(slope) over (partition by scope, kind, name order by hour rows between unbounded preceding and current row) - slope as slope,
           sum(moment) over (partition by scope, kind, name order by hour rows between unbounded preceding and current row) - moment as moment
    from of_hour
), summed as (
    select p.scope, p.kind, p.name, p.us, p.run_key, p.task_index, p.map_index, p.from_us, p.sign,
           b.slope + sum(p.slope) over (partition by p.scope, p.kind, p.name, p.hour order by p.us, abs(p.sign), p.sign, p.from_us, p.run_key, p.task_index, p.map_index
                                        rows between unbounded preceding and current row) as slope,
           b.moment + sum(p.slope * p.us) over (partition by p.scope, p.kind, p.name, p.hour order by p.us, abs(p.sign), p.sign, p.from_us, p.run_key, p.task_index, p.map_index
                                                rows between unbounded preceding and current row) as moment
    from placed p
    join at_begin b on b.scope = p.scope and b.kind = p.kind and b.name = p.name and b.hour = p.hour
)
select run_key, task_index, map_index, from_us, kind, name, cast(sum(sign * (us * slope - moment)) as bigint) as us
from summed
where sign <> 0
group by run_key, task_index, map_index, from_us, kind, name
