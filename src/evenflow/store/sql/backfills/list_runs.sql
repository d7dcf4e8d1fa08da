-- The dates of a backfill in their order, each with its run or why it gets none.
select jsonb_build_array(x.position) as place, x.logical_date, x.data_interval_start, x.data_interval_end, x.partition,
    x.passed_over, r.run_id, r.state::text
from backfill_run x
left join dag_run r using (run_key)
where x.backfill_id = %(backfill_id)s and (%(after)s::jsonb is null or x.position > (%(after)s::jsonb ->> 0)::bigint)
order by x.position
limit %(limit)s
