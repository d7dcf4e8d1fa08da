-- A secret by name; the first who asks makes it. Empty when two make it at once and the other was first: ask again.
with made as (
    insert into secret (name, value)
    select %(name)s, %(value)s where not exists (select from secret where name = %(name)s)
    on conflict (name) do nothing
    returning value
)
select value from made
union all
select value from secret where name = %(name)s
