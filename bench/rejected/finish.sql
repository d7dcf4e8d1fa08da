-- So many of what runs have ended: their limits have room again.
with ended as (
    delete from holding
    where holding_id in (select holding_id from holding order by holding_id limit %(exits)s)
    returning limits, weight
)
update concurrency_limit l set used = l.used - c.n
from (
    select k.limit_id, sum(case k.n when 1 then weight else 1 end)::int as n
    from ended, unnest(limits) with ordinality as k (limit_id, n)
    group by k.limit_id
) as c
where l.limit_id = c.limit_id
