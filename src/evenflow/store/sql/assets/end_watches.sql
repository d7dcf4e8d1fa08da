-- Ends runs that watch an asset although their DAG is not to watch it now, or has a newer version: as if a person marked their task
-- as successful. One that has not begun is cancelled. What is being ended already is left.
insert into report (run_key, kind, epoch, payload)
select r.run_key, (case r.state when 'queued' then 'cancel' else 'operate' end)::report_kind, 0,
       case r.state
           when 'queued' then jsonb_build_object('actor', %(actor)s::text)
           else jsonb_build_object('event', 'mark_success', 'actor', %(actor)s::text, 'tasks', jsonb_build_array(t.task_id))
       end
from asset_watch w
join dag d on d.dag_id = w.dag_id
join dag_run r on r.dag_id = w.dag_id and r.state in ('queued', 'running')
join task t on t.version_key = r.version_key and t.task_index = 0
where (r.version_key <> d.version_key or not ({{is_watching}}))
  and r.run_type = 'scheduled' and r.cancelled_by is null
  and not exists (select from report p where p.run_key = r.run_key and p.epoch = 0 and p.kind in ('cancel', 'operate'))
  and not exists (select from dispatch x where x.run_key = r.run_key and x.intent is not null)
