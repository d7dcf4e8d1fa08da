-- Names that not all DAGs may use, and who may.
select name, dags from sealed_value where kind = %(kind)s and dags <> '{}' order by name
