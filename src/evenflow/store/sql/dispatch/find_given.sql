-- Which of these claims have been answered: their keys are the last under which their workers were given tries.
select service_id, claim_key
from unnest(%(workers)s::bigint[], %(keys)s::text[]) as c (service_id, claim_key)
join service using (service_id, claim_key)
