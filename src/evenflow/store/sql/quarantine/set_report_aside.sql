-- Sets aside the report that cannot be applied, the oldest of its run (of this kind and try, where they are known): its content is
-- kept in the run's history, up to a length. A start or a person's request goes; an exit or a loss stays with nothing but the
-- reason, so the try fails or is sent again; a trigger's report becomes its failure. A report that was replaced already, or that
-- can be neither deleted nor replaced, is not in the answer. The run is locked, so no other transaction deletes it.
with found as materialized (
    select p.run_key, p.report_id, p.kind, p.epoch, p.payload, r.state
    from report p
    join dag_run r using (run_key)
    where p.run_key = %(run_key)s and not p.held and p.kind in ('started', 'exit', 'lost', 'operate', 'event')
      and (%(kind)s::report_kind is null or p.kind = %(kind)s::report_kind and p.epoch = %(epoch)s)
    order by p.report_id
    limit 1
), bad as materialized (
    select * from found where payload ->> 'set_aside' is null
), gone as (
    delete from report p using bad where p.run_key = bad.run_key and p.epoch = bad.epoch and p.report_id = bad.report_id
        and bad.kind in ('started', 'operate')
), replaced as (
    update report p
    set payload = case
        when bad.kind = 'event' then jsonb_build_object('task_index', bad.payload -> 'task_index', 'map_index',
            bad.payload -> 'map_index', 'purpose', 'failed',
                                                        'set_aside', true, 'error',
                                                            'what it reported could not be applied: ' || %(reason)s::text)
        else jsonb_build_object('outcome', 'failed', 'set_aside', true, 'reason',
            'what it reported could not be applied: ' || %(reason)s::text)
    end
    from bad
    where p.run_key = bad.run_key and p.epoch = bad.epoch and p.report_id = bad.report_id and bad.kind in ('exit', 'lost', 'event')
)
insert into run_event (run_key, event, state, actor, detail)
select run_key, 'set_aside', state, 'scheduler',
       jsonb_build_object('report', kind, 'epoch', epoch, 'reason', %(reason)s::text, 'said', left(payload::text, %(length)s))
from bad
