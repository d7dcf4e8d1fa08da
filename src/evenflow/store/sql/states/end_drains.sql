-- Ends the drains of these objects that have nothing in flight, or whose deadline has come: what drained is paused, and an event says how. For
-- who has the executor's lock, and only for what states/find_drained has found: it reads all that is deferred. NO KEY UPDATE: who changes the state of one waits, and finds it as it is then.
with draining as materialized (
    select kind, name, deadline <= now() as late
    from service_state
    where state = 'draining' and (kind, name) in (select * from unnest(%(kinds)s::text[], %(names)s::text[]))
    for no key update
), waiting as materialized (
    select f.run_key, f.task_index
    from deferral f
    where exists (select from draining where kind in ('pool', 'queue'))
      and not exists (select from dispatch d where d.run_key = f.run_key and d.task_index = f.task_index and d.map_index = f.map_index)
), places as materialized (
    select coalesce(v.spec -> 'tasks' -> k.task_index ->> 'pool', 'default_pool') as pool,
           coalesce(v.spec -> 'tasks' -> k.task_index ->> 'queue', 'default') as queue
    from (select distinct r.version_key, w.task_index from waiting w join dag_run r using (run_key)) as k
    join dag_version v using (version_key)
), judged as materialized (
    select s.kind, s.name, s.late, case s.kind
        when 'pool' then exists (select from places p where p.pool = s.name) or exists (
            select from concurrency_limit l
            where l.run_key = 0 and l.kind = 'pool' and l.name = s.name
              and l.used > coalesce((select sum(released) from wake w where w.limit_id = l.limit_id), 0))
        when 'queue' then exists (select from places p where p.queue = s.name) or exists (select from dispatch d where d.queue = s.name)
        when 'worker' then exists (
            select from service v join dispatch d on d.worker_id = v.service_id where v.kind = 'worker' and v.name = s.name)
        when 'dag' then exists (select from dag_run r where r.state = 'running' and r.dag_id = s.name)
        else exists (select from dag_run r where r.state = 'running')
          or exists (select from dag_run r where r.state = 'queued' and r.dag_id = 'evenflow_callbacks')
    end as busy
    from draining s
), ended as materialized (
    select kind, name, busy, case when busy then %(gave_up)s::text else %(drained)s::text end as reason
    from judged
    where not busy or late
), dags as (
    update dag d set is_paused = true, paused_reason = e.reason, updated_at = now() from ended e where e.kind = 'dag' and d.dag_id = e.name
), gone as (
    delete from service_state s using ended e where s.kind = 'dag' and e.kind = 'dag' and s.name = e.name
), paused as (
    update service_state s set state = 'paused', since = now(), deadline = null, reason = e.reason
    from ended e
    where s.kind = e.kind and s.name = e.name and s.kind <> 'dag'
)
insert into audit_event (actor, action, object, detail)
select 'scheduler', kind || '.drained', name, jsonb_build_object('in_flight', busy) from ended
returning action, object
