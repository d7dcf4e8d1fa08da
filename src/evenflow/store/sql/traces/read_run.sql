-- A run, and the runs that made it begin: one whose task triggered it, and those whose tasks changed its assets.
select r.run_key, r.dag_id, r.run_id, r.run_type, v.version_number, r.created_at, r.run_after, r.logical_date, r.ended_at, r.reason,
       r.backfill_id, r.traceparent,
       coalesce((
           select jsonb_agg(jsonb_build_array(c.kind, c.run_key, c.traceparent) order by c.kind, c.run_key)
           from (
               (
                   select 'triggered' as kind, a.run_key, a.traceparent
                   from run_event e
                   join dag_run a on a.dag_id = e.asker ->> 'dag_id' and a.run_id = e.asker ->> 'run_id'
                   where e.run_key = r.run_key and e.event = 'triggered'
               )
               union
               (
                   select 'asset', p.run_key, p.traceparent
                   from run_asset_event x
                   join asset_event a using (event_id)
                   join dag_run p on p.dag_id = a.dag_id and p.run_id = a.run_id
                   where x.run_key = r.run_key
                   order by p.run_key desc
                   limit %(causes)s
               )
           ) as c
       ), '[]') as causes
from dag_run r
join dag_version v using (version_key)
where r.run_key = %(run_key)s
