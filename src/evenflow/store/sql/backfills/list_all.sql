-- Backfills, the newest first, and how far they are: of one DAG or all, or one by its number.
select jsonb_build_array(b.backfill_id) as place, b.backfill_id, b.dag_id, b.from_date, b.to_date, b.partitions_of, b.is_reversed,
    b.reprocess, b.max_active_runs, b.params, b.priority, b.is_paused,
       b.created_at, b.created_by, b.ended_at, b.cancelled_by, n.total, n.passed_over, n.waiting, n.active, n.success, n.failed
from backfill b
cross join lateral (
    select count(*)::int as total, count(x.passed_over)::int as passed_over,
           count(*) filter (where x.run_key is null and x.passed_over is null)::int as waiting,
           count(*) filter (where r.state in ('queued', 'running'))::int as active,
           count(*) filter (where r.state = 'success')::int as success, count(*) filter (where r.state = 'failed')::int as failed
    from backfill_run x
    left join dag_run r using (run_key)
    where x.backfill_id = b.backfill_id
) as n
where (%(dag_id)s::text is null or b.dag_id = %(dag_id)s) and (%(backfill_id)s::bigint is null or b.backfill_id = %(backfill_id)s)
  and (%(scope)s::jsonb is null or b.dag_id in (select dags_in_scope(%(scope)s::jsonb)))
  and (%(after)s::jsonb is null or b.backfill_id < (%(after)s::jsonb ->> 0)::bigint)
order by b.backfill_id desc
limit %(limit)s
