-- What a running try keeps with an asset under a name, in place of what was there. Answers nothing when the try is over, or when
-- the asset has as many other values as it may. The dispatch is kept until this commits (KEY SHARE).
with current as (
    {{current_try}}
), room as (
    select from current
    where (select count(*) from asset_value v where v.asset = %(asset)s and v.name <> %(name)s) < %(limit)s::int
)
insert into asset_value (asset, name, value)
select %(asset)s, %(name)s, %(value)s::jsonb from room
on conflict (asset, name) do update set value = excluded.value, asked_on = excluded.asked_on
returning name
