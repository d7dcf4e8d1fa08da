-- Which of these workers have been given tries under the keys of their claims.
select c.service_id, c.claim_key
from unnest(%(workers)s::bigint[], %(keys)s::text[]) as c (service_id, claim_key)
cross join lateral (select from dispatch d where d.worker_id = c.service_id and d.claim_key = c.claim_key limit 1) as given
