-- Gives a DAG to another bundle: the next file of it that defines the DAG has it.
update dag set bundle = %(bundle)s, updated_at = now() where dag_id = %(dag_id)s
