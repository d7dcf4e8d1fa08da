-- Assets that a DAG does not make any longer go.
delete from asset_producer where dag_id = %(dag_id)s and name <> all(%(names)s::text[])
