-- Which of these DAGs this file cannot have: those of another bundle, until a person gives them away, and those that another file
-- of this bundle defines. A DAG whose file is gone may come back in any other file of its bundle.
select d.dag_id, d.bundle, d.file
from dag d
where d.dag_id = any(%(dag_ids)s::text[])
  and (d.bundle <> %(bundle)s
       or d.file <> %(file)s and d.is_active
          and exists (select from dag_file f where f.bundle = d.bundle and f.file = d.file))
