-- The names of a run, and the run that it is about: of a callback the one that called, as long as that exists.
select r.dag_id, r.run_id, r.version_key, coalesce(o.run_key, r.run_key) as subject
from dag_run r
left join callback c on c.run_key = r.run_key
left join dag_run o on o.run_key = c.of_run
where r.run_key = %(run_key)s
