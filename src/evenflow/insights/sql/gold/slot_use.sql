-- By hour: how much of each limit that all runs share was used, on average and at most, and for how long it was full. An hour in which nothing
-- began or ended has no row.
with part as (
    select kind, name, hour, used_at_begin, used, capacity, position, tx_us,
           least(coalesce(next_us, (hour + 1) * 3600000000), (hour + 1) * 3600000000) - tx_us as us
    from usage
    where scope = 0
)
select kind, name, hour, max(capacity) as capacity, greatest(max(used), max(used_at_begin)) as most,
       sum(used * us) + max(case when position = 1 then used_at_begin * (tx_us - hour * 3600000000) else 0 end) as slot_us,
       sum(case when used >= capacity then us else 0 end)
         + max(case when position = 1 and used_at_begin >= capacity then tx_us - hour * 3600000000 else 0 end) as full_us
from part
group by kind, name, hour
