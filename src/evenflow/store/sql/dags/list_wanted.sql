-- DAG files that define DAGs which are other files', with the file that has each.
select w.dag_id, f.bundle, f.file, d.bundle, d.file
from dag_file f
cross join lateral unnest(f.wants) as w (dag_id)
join dag d on d.dag_id = w.dag_id
where f.wants is not null
order by w.dag_id, f.bundle, f.file
limit %(limit)s
