-- How many queued runs of a DAG begin before this one.
select count(*)::int as ahead
from (
    select from dag_run
    where dag_id = %(dag_id)s and state = 'queued' and (run_after, run_key) < (%(run_after)s::timestamptz, %(run_key)s::bigint)
    limit %(counted)s
) as before
