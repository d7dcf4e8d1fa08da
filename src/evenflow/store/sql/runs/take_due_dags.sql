-- DAGs whose next scheduled run is due, with the last one that they had. SKIP LOCKED: another scheduler creates it.
select d.dag_id, d.version_key, v.spec::text,
       (select max(r.logical_date) from dag_run r where r.dag_id = d.dag_id and r.run_type = 'scheduled') as last_logical, now()
from dag d
join dag_version v using (version_key)
where d.next_run_at <= now() and not d.is_paused and d.is_active
order by d.next_run_at
limit %(limit)s
for no key update of d skip locked
