-- The default of a setting holds again, and its history gets a line; nothing happens when it was not set.
with unset as (
    delete from setting where name = %(name)s returning name
)
insert into setting_change (name, value, changed_by) select name, null, %(actor)s from unset
