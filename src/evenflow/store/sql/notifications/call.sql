-- What has happened since the look before: each event for which there is a rule becomes a queued run of the DAG of callbacks, once
-- for each rule, in the transaction that says how far was looked. Of another history of this database nothing is told: a look
-- begins with now.
with {{looks_at_history}}, happened as (
    select e.run_key, e.task_index, e.map_index, e.try_number, case e.event when 'retry' then 'task_retried'
        else 'task_failed' end as event,
           e.state::text as state, e.detail ->> 'reason' as reason
    from look
    join task_event e on {{is_unseen}}
    where e.event = 'retry' or e.event in ('fail', 'cancel') and e.state = 'failed'
    union all
    select e.run_key, null, -1, 0,
           case when e.event = 'deadline_missed' then e.event when e.state = 'success' then 'run_succeeded' else 'run_failed' end,
           e.state::text, 'The deadline ' || (e.detail ->> 'deadline') || ' was missed.'
    from look
    join run_event e on {{is_unseen}}
    where e.event in ('succeed', 'fail', 'cancel', 'deadline_missed')
), called as materialized (
    select next_run_key() as run_key, r.run_key as of_run, r.dag_id, r.run_id, r.version_key, h.task_index, h.map_index,
        h.try_number,
           h.event, h.state, coalesce(h.reason, r.reason) as reason, n.name as rule,
           jsonb_build_object('rule', n.name, 'kind', n.notifier, 'conn_id', n.conn_id, 'signed_by', n.signed_by, 'recipients',
               n.recipients) as notifier
    from happened h
    join dag_run r using (run_key)
    join notification_rule n on n.is_enabled and n.event = h.event and (n.dags = '{}' or r.dag_id = any(n.dags))
                             and (n.scope is null or r.dag_id in (select dags_in_scope(n.scope)))
    where r.run_type <> 'callback'
), made as (
    insert into dag_run (run_key, dag_id, run_id, version_key, run_type, params)
    select c.run_key, v.dag_id, c.event || '__' || c.run_key, v.version_key, 'callback',
           jsonb_strip_nulls(jsonb_build_object('rule', c.rule, 'dag_id', c.dag_id, 'run_id', c.run_id, 'task_id', t.task_id,
                                                'map_index', nullif(c.map_index, -1), 'try_number', nullif(c.try_number, 0),
                                                'state', c.state, 'reason', c.reason))
    from called c
    join dag_version v on v.dag_id = %(dag_id)s and v.spec_hash = '' and v.code_hash = ''
    left join task t on t.version_key = c.version_key and t.task_index = c.task_index
)
insert into callback (run_key, of_run, version_key, task_index, map_index, try_number, event, position, state, reason, notifier)
select run_key, of_run, version_key, task_index, map_index, try_number, event, 0, state, reason, notifier
from called
