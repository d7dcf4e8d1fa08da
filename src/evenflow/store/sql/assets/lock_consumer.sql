-- A DAG whose condition seems to hold. SKIP LOCKED: another scheduler makes its run.
select d.version_key, v.outline::text as spec, now()
from dag d
join dag_version v using (version_key)
where d.dag_id = %(dag_id)s and not d.is_paused and d.is_active and not exists (
    select from service_state s where s.kind = 'dag' and s.name = d.dag_id and s.state = 'draining' or s.kind = 'system')
for no key update of d skip locked
