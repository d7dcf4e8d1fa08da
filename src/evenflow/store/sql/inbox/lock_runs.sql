-- Runs that have reports or due timers, the oldest report first, found among so many reports; of those that have nothing but cancels and
-- operations, which take long, only as many as one transaction applies. SKIP LOCKED: one scheduler applies a run at a time and nobody waits;
-- NO KEY: rows that refer to the run may be inserted meanwhile.
select r.run_key, r.dag_id, r.version_key, r.state::text, r.priority,
       (extract(epoch from r.run_after) * 1e6)::bigint as run_after_us, r.cancelled_by, d.is_paused, r.clears
from (
    select run_key, first
    from (
        select run_key, min(first) as first, bool_and(is_change) as is_change,
               row_number() over (partition by bool_and(is_change) order by min(first)) as place
        from (
            (select run_key, report_id as first, kind in ('cancel', 'operate') as is_change from report order by report_id limit %(reports)s)
            union all
            (select run_key, 0, false from timer where due_at <= now() order by due_at limit %(limit)s)
        ) as said
        group by run_key
    ) as placed
    where not is_change or place <= %(changes)s
    order by first
    limit %(limit)s
) as waiting
join dag_run r using (run_key)
join dag d using (dag_id)
order by waiting.first
for no key update of r skip locked
