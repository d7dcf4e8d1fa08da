-- Two files that claim one dag_id come one after the other, even before the DAG exists. In the order of the keys, because there are
-- several.
select pg_advisory_xact_lock(1145128264, key)
from (select distinct hashtext(dag_id) as key from unnest(%(dag_ids)s::text[]) as d (dag_id) order by key) as k
