-- A DAG whose condition seems to hold. SKIP LOCKED: another scheduler makes its run.
select d.version_key, v.outline::text as spec, now()
from dag d
join dag_version v using (version_key)
where d.dag_id = %(dag_id)s and d.is_active and {{takes_runs}}
for no key update of d skip locked
