-- In how many nodes lanes are open or woken, counted no further than asked for, by skipping through the index.
with recursive occupied as (
    select k.parked_on, n.node_id
    from (values (0::bigint), (-2)) as k (parked_on)
    cross join lateral (select node_id from lane where parked_on = k.parked_on and parked_on in (0, -2) order by node_id limit 1) as n
    union all
    select o.parked_on, n.node_id
    from occupied o
    cross join lateral (
        select node_id from lane where parked_on = o.parked_on and parked_on in (0, -2) and node_id > o.node_id order by node_id limit 1
    ) as n
)
select count(*)::int from (select from occupied limit %(most)s) as o
