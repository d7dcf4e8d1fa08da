-- The sealed parts of tries that wait or have resumed, of what task instances store once, and of reports in quarantine, which will
-- become the first of these. None is a value that a person set. Other reports are applied within moments.
select 'deferral' as source, run_key, task_index, map_index, '' as name, sealed, event from deferral
union all
select 'once', run_key, task_index, map_index, name, sealed, null from once_value where sealed is not null
union all
select 'report', run_key, 0, 0, report_id::text, decode(seal, 'base64'), null
from report cross
join lateral (select case kind when 'event' then payload ->> 'event' else payload -> 'defer' ->> 'sealed' end as seal) as s
where held and seal is not null
