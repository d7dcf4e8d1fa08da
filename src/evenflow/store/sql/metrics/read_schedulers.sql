-- What schedulers tell of themselves; of two with one name, the younger.
select distinct on (name) name, detail
from service
where kind = 'scheduler' and state in ('active', 'draining')
order by name, service_id desc
