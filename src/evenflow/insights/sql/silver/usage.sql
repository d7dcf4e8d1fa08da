-- How much of each limit was in use after each change of it, and whether it was full then and before. Summed up hour by hour first, then within
-- the hour: so no worker of a cluster has to hold all history of the pool that everybody uses.
with step as (
    select scope, kind, name, hour, tx_us, xact, place, sum(taken) as taken, max(capacity) as own_capacity, max(is_first) as is_first
    from ledger
    group by scope, kind, name, hour, tx_us, xact, place
), of_hour as (
    select scope, kind, name, hour, sum(taken) as taken from ledger group by scope, kind, name, hour
), at_begin as (
    select scope, kind, name, hour,
           sum(taken) over (partition by scope, kind, name order by hour rows between unbounded preceding and current row) - taken as used
    from of_hour
), shared as (
    select kind, name, from_us, capacity, lead(from_us) over (partition by kind, name order by from_us) as until_us from capacities
), used as (
    select s.scope, s.kind, s.name, s.hour, s.tx_us, s.xact, s.place, s.taken, s.is_first, coalesce(s.own_capacity, c.capacity) as capacity,
           b.used as used_at_begin,
           cast(b.used + sum(s.taken) over w as bigint) as used,
           row_number() over w as position,
           lead(s.tx_us) over w as next_us
    from step s
    join at_begin b on b.scope = s.scope and b.kind = s.kind and b.name = s.name and b.hour = s.hour
    left join shared c on c.kind = s.kind and c.name = s.name and c.from_us <= s.tx_us and (c.until_us is null or s.tx_us < c.until_us)
    window w as (partition by s.scope, s.kind, s.name, s.hour order by s.tx_us, s.xact, s.place)
)
select u.*, case when used >= capacity then 1 else 0 end as is_full,
       lag(case when used >= capacity then 1 else 0 end) over (partition by scope, kind, name, hour order by tx_us, xact, place) as was_full
from used u
