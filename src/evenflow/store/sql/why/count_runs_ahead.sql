-- How many queued runs of a DAG begin before this one, in their order, as far as they are counted.
select coalesce(min(place) filter (where run_key = %(run_key)s::bigint) - 1, count(*))::int as ahead
from (
    select q.run_key, row_number() over (order by {{runs_in_order}}) as place
    from dag_run q
    where q.dag_id = %(dag_id)s and q.state = 'queued' and q.run_after <= now()
    order by {{runs_in_order}}
    limit %(counted)s
) as line
