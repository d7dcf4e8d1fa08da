-- Logs that are to be deleted, but for those of a name that is in use again.
select g.dag_id, g.run_id,
       case when g.run_id = '' then exists (select from dag d where d.dag_id = g.dag_id)
            else exists (select from dag_run r where r.dag_id = g.dag_id and r.run_id = g.run_id) end as in_use
from log_garbage g
order by g.at
limit %(limit)s
