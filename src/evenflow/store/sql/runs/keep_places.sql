-- Wakes that runs/take_queued has taken in this transaction, of DAGs of which nothing was begun: they have their places again.
insert into run_wake (dag_id, wake_id, priority, line, xact) overriding system value
select dag_id, wake_id, priority, line_of(dag_id), xact
from unnest(%(dag_ids)s::text[], %(wake_ids)s::bigint[], %(priorities)s::int[], %(xacts)s::xid8[]) as c (dag_id, wake_id, priority,
    xact)
