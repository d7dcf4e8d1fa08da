-- DAGs of which a queued run may begin while no wake names them. Looks at a number of DAGs with queued runs, after a given one:
-- found by skipping through the index. Answers the last of them too when there may be more.
with recursive waiting as (
    (select dag_id, 1 as n from dag_run where state = 'queued' and dag_id > %(after)s order by dag_id limit 1)
    union all
    select x.dag_id, w.n + 1
    from waiting w
    cross join lateral (
        select r.dag_id from dag_run r where r.state = 'queued' and r.dag_id > w.dag_id order by r.dag_id limit 1
    ) as x
    where w.n < %(most)s
), judged as (
    select w.dag_id, w.n,
           not exists (select from run_wake k where k.dag_id = w.dag_id)
           and exists (
               select from dag d
               where d.dag_id = w.dag_id and {{takes_runs}})
           and not exists (
               select from concurrency_limit l where l.run_key = 0 and l.kind = 'dag_runs' and l.name = w.dag_id
                   and l.used >= l.capacity)
           and exists (
               select from dag_run q
               where q.dag_id = w.dag_id and q.state = 'queued' and q.run_after <= now() and q.cancelled_by is null
                   and q.quarantined_at is null
           ) as forgotten
    from waiting w
)
select dag_id, forgotten, n = %(most)s as last from judged where forgotten or n = %(most)s
