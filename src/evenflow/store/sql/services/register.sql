-- A process that starts. Those of its kind that ended a week ago, and have left nothing, are forgotten.
with forgotten as (
    delete from service s
    where s.kind = %(kind)s and (s.settled or s.state in ('active', 'draining')) and s.beat_at < now() - interval '7 days'
      and not exists (select from dispatch d where d.worker_id = s.service_id)
)
insert into service (kind, name, host, pid, version, detail, schema_known)
values (%(kind)s, %(name)s, %(host)s, %(pid)s, %(version)s, %(detail)s::jsonb, %(schema_known)s)
returning service_id
