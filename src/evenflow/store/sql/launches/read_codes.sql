-- Where the code of these tries is, and the environment that runs it.
select d.epoch, coalesce(v.bundle, '') as bundle, v.file, coalesce(v.spec ->> 'environment', '') as environment
from dispatch d
join dag_run r using (run_key)
join dag_version v using (version_key)
where d.epoch = any(%(epochs)s::bigint[])
