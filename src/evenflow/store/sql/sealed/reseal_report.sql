-- Gives one report in quarantine its new seal, unless it has left it meanwhile: then it is applied, and must not be changed.
update report
set payload = jsonb_set(payload, path, to_jsonb(translate(encode(%(new)s::bytea, 'base64'), E'\n', '')))
from (values ('event'::report_kind, '{event}'::text[]), ('exit', '{defer,sealed}')) as places (of_kind, path)
where run_key = %(run_key)s and report_id = %(name)s::bigint and held and kind = of_kind
    and decode(payload #>> path, 'base64') = %(old)s::bytea
