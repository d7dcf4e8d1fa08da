-- Locks the rows of these DAGs, in one order for all: whose runs end at the same time in two schedulers is then looked at by one after the other.
select dag_id from dag where dag_id = any(%(dag_ids)s::text[]) order by dag_id for no key update
