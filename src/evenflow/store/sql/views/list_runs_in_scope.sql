-- As list_runs, of the DAGs in a scope, for whom the runs of others are not read: the newest run of each; then those of the DAGs of
-- which the newest ones are, since no others can have runs on this page. A DAG's runs are those "between" its name and its name:
-- asked for by "=", those of a DAG that has none are looked for among the newest of all DAGs.
with newest as (
    select d.dag_id, r.run_key
    from dags_in_scope(%(scope)s::jsonb) as d (dag_id)
    cross join lateral (
        select r.run_key from dag_run r where r.dag_id between d.dag_id and d.dag_id and {{asked_runs}}
        order by r.dag_id, r.run_key desc limit 1) as r
    where %(dag_id)s::text is null or d.dag_id = %(dag_id)s
    order by r.run_key desc
    limit %(limit)s
), wanted as (
    select r.run_key
    from newest n
    cross join lateral (
        select r.run_key from dag_run r where r.dag_id between n.dag_id and n.dag_id and {{asked_runs}}
        order by r.dag_id, r.run_key desc limit %(limit)s) as r
    order by r.run_key desc
    limit %(limit)s
)
select {{run_summary}}
from wanted
join dag_run r on r.run_key = wanted.run_key
join dag_version v on v.version_key = r.version_key
order by r.run_key desc
