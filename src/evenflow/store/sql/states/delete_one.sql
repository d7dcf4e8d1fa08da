-- Something is active again. What waited there counts as startable from now on: its pool has more room than before, or all
-- executors.
with gone as (
    delete from service_state where kind = %(kind)s and name = %(name)s returning kind, name
)
update concurrency_limit l set released_at = now()
from gone
where l.run_key = 0
  and (gone.kind = 'pool' and l.kind = 'pool' and l.name = gone.name or gone.kind in ('queue', 'system') and l.kind = 'executor')
