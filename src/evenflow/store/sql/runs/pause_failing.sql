-- Pauses those of these DAGs, which are locked, whose last "most" ended runs have all failed, and says why.
update dag d
set is_paused = true, updated_at = now(),
    paused_reason = format('its last %%s runs failed (max_consecutive_failed_dag_runs)', c.most)
from (select dag_id, max(most) as most from unnest(%(dag_ids)s::text[], %(most)s::int[]) as c (dag_id, most) group by dag_id) as c
where d.dag_id = c.dag_id and not d.is_paused and c.most = (
    select count(*) filter (where r.state = 'failed')
    from (
        select state from dag_run
        where dag_run.dag_id = c.dag_id and state in ('success', 'failed')
        order by run_key desc
        limit c.most
    ) as r
)
