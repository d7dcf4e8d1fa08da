-- What a scheduler applies before it selects, each counted up to a limit; and how many schedulers live.
select (select count(*)::int from (select from report where not held limit %(counted)s) as r) as reports,
       (select count(*)::int from (select from timer where due_at <= now() and not held limit %(counted)s) as t) as timers,
       (select count(*)::int from dag where is_paused <> pause_applied) as pauses,
       (select count(*)::int
        from (
            select from dag_run r
            join dag d using (dag_id)
            left join concurrency_limit l on l.run_key = 0 and l.kind = 'dag_runs' and l.name = r.dag_id
            where r.state = 'queued' and r.run_after <= now() and r.quarantined_at is null and {{takes_runs}}
              and (l.limit_id is null or l.used < l.capacity)
            limit %(counted)s
        ) as q) as runs,
       (select count(*)::int from service s
        where kind = 'scheduler' and {{takes_work}}) as schedulers
