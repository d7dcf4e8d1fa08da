-- Which of these DAGs another file has.
select d.dag_id, d.bundle, d.file
from dag d
join dag_file f using (bundle, file)
where d.dag_id = any(%(dag_ids)s::text[]) and d.is_active and (d.bundle, d.file) <> (%(bundle)s, %(file)s)
