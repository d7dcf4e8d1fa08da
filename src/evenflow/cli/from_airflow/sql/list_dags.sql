-- DAGs whose file is there, the newest logical date that their schedule or a backfill has made, and how many of their runs have not ended.
select d.dag_id, d.is_paused, d.next_dagrun,
       max(case when r.run_type in ('scheduled', 'backfill') then r.logical_date end) as last_logical,
       sum(case when r.state in ('queued', 'running') then 1 else 0 end) as live
from dag d
left join dag_run r on r.dag_id = d.dag_id
where not d.is_stale
group by d.dag_id, d.is_paused, d.next_dagrun
order by d.dag_id
