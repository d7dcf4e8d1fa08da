-- Runs, the newest first.
select {{run_summary}}
from dag_run r
join dag_version v on v.version_key = r.version_key
where {{asked_runs}}
order by r.run_key desc
limit %(limit)s
