-- The asset of this name, or those that tasks have added to the alias of this name lately, by name.
select a.name, a.uri, a.group_name as "group", a.extra
from asset a
where a.name in (
    select %(named)s where not %(is_alias)s::boolean
    union
    select asset from (select e.asset from asset_event e where e.alias = %(named)s and %(is_alias)s order by e.event_id desc
        limit %(limit)s) as newest
)
order by a.name
