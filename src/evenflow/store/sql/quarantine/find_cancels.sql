-- Which of these runs a person wants to end, and that person.
select r.run_key, coalesce(r.cancelled_by, c.payload ->> 'actor', 'somebody') as actor
from dag_run r
left join lateral (
    select true as wanted, payload from report p where p.run_key = r.run_key and p.kind = 'cancel' order by p.report_id limit 1
) as c on true
where r.run_key = any(%(run_keys)s::bigint[]) and (r.cancelled_by is not null or c.wanted)
