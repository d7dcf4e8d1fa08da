-- Ends the drains of these objects, each with whether anything of it is in flight, or those whose deadline has come: what drained
-- is paused, and an event says how. The caller has had the executor's lock since before it judged them. NO KEY UPDATE: a
-- transaction that changes the state of one waits, and finds it as it is then.
with ended as materialized (
    select s.kind, s.name, g.in_flight, case when g.in_flight then %(gave_up)s::text else %(drained)s::text end as reason
    from service_state s
    join unnest(%(kinds)s::text[], %(names)s::text[], %(in_flight)s::bool[]) as g (kind, name, in_flight) using (kind, name)
    where s.state = 'draining' and (not g.in_flight or s.deadline <= now())
    for no key update of s
), dags as (
    update dag d set is_paused = true, paused_reason = e.reason, updated_at = now() from ended e where e.kind = 'dag'
        and d.dag_id = e.name
), gone as (
    delete from service_state s using ended e where s.kind = 'dag' and e.kind = 'dag' and s.name = e.name
), paused as (
    update service_state s set state = 'paused', since = now(), deadline = null, reason = e.reason
    from ended e
    where s.kind = e.kind and s.name = e.name and s.kind <> 'dag'
)
insert into audit_event (actor, action, object, detail)
select 'scheduler', kind || '.drained', name, jsonb_build_object('in_flight', in_flight) from ended
returning action, object
