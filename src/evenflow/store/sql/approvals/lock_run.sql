-- The run of a task that is answered. NO KEY, as schedulers lock it: what follows sees all their decisions, and they decide nothing
-- of the run meanwhile. Another answer at the same time waits here, and then finds the first one. A person's request about the run
-- that is not decided yet comes first: it may end the task that asks.
select exists (select from report where report.run_key = dag_run.run_key and kind in ('cancel', 'operate')) as is_changing
from dag_run where dag_id = %(dag_id)s and run_id = %(run_id)s for no key update
