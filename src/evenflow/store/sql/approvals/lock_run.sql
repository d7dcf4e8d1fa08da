-- The run of a task that is answered. NO KEY, as schedulers lock it: what follows sees all that they have decided, and they decide nothing
-- of the run meanwhile. Whoever answers at the same time waits here, and finds the first answer. What people want of the run, and nobody has
-- decided yet, comes first: it may end what is asked.
select exists (select from report where report.run_key = dag_run.run_key and kind in ('cancel', 'operate')) as is_changing
from dag_run where dag_id = %(dag_id)s and run_id = %(run_id)s for no key update
