-- From when on a pool or an executor had which capacity. What is known of now holds for all that came before, unless a change is known:
-- then what was before that is not known, and is null. A row a change: each export says again what is known.
with known as (
    select l.kind, l.name, unix_micros(l.at) as at_us, min(l.capacity) as capacity, max(case when l.is_change then 1 else 0 end) as is_change
    from limits l
    group by l.kind, l.name, unix_micros(l.at)
), ordered as (
    select kind, name, at_us, capacity, is_change, row_number() over (partition by kind, name order by at_us) as place,
           lag(capacity) over (partition by kind, name order by at_us) as before
    from known
)
select kind, name, case when place = 1 and is_change = 0 then 0 else at_us end as from_us, capacity
from ordered
where place = 1 or capacity is distinct from before
