-- What time it is, whether a round follows at once, and which kinds of work there are at all: what comes later brings a
-- notification of its own. Wakes of runs are looked for from a transaction on, as in runs/take_queued: in order, since the plan of
-- an EXISTS may read the whole table, with all that is gone and cannot be removed. And some workers whose claims wait, the longest
-- first, at API servers that were heard of just now: of each combination of queues that they serve the same number, since what the
-- turn will start is not known. Workers that may not take everything are left out, and all are while something is frozen.
select extract(epoch from now())::float8 as now_s,
       coalesce((select value = 'true' from setting where name = 'fast_follow'), true) as fast_follow,
       exists (select from wake) as wakes,
       coalesce((select true from run_wake where xact >= %(since)s::xid8 and due_at <= now() order by xact limit 1),
           false) as run_wakes,
       exists (select from dag where is_paused <> pause_applied) as pauses,
       exists (select from timer where due_at <= now() and not held) as timers,
       exists (select from task where queued_timeout_s is not null) as queued_timeouts,
       exists (select from lane where parked_on >= -2) as lanes,
       exists (select from past_watch) as watches,
       exists (select from concurrency_limit where run_key = 0 and kind = 'executor' and used > 0) as tries,
       exists (select from service_state where kind in ('pool', 'queue', 'system')) as closures,
       (coalesce((select sum(version) from sharing), 0) + (select sum(version) from executor))::bigint as places,
       (select jsonb_agg(jsonb_build_array(service_id, waiting_claim) order by waits_since)
        from (select service_id, waiting_claim, waits_since
              from (select service_id, waiting_claim, waits_since,
                           row_number() over (partition by waiting_claim -> 'queues' order by waits_since) as place
                    from service s
                    where waits_since is not null and state = 'active'
                      and not {{is_passed_over}}
                      and exists (select from service a
                                  where a.service_id = (s.waiting_claim ->> 'api')::bigint
                                      and a.beat_at > now() - make_interval(secs => %(heard_s)s))
                   ) as theirs
              order by place, waits_since
              limit %(workers)s) as w) as waiting_claims
