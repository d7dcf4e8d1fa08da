-- Runs that have ended since the look before, in the transaction that says how far was looked. Of what ended too long ago nothing
-- is told, nor of another history of this database: a look begins with now.
with {{looks_at_history}}
insert into trace_due (run_key, ended_at)
select e.run_key, e.at
from look
join run_event e on {{is_unseen}}
join dag_run r using (run_key)
where e.event in ('succeed', 'fail', 'cancel') and e.at > now() - make_interval(secs => %(age_s)s) and r.run_type <> 'callback'
on conflict do nothing
