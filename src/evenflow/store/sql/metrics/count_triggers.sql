-- Triggers that wait for a triggerer and are due, and those that one runs; counting ends at the most.
select (
           select count(*)
           from (
               select from deferral
               where purpose is null and triggerer_id is null and due_at <= now()
                 and (%(scope)s::jsonb is null or exists (
                     select from dag_run r where r.run_key = deferral.run_key
                         and r.dag_id in (select dags_in_scope(%(scope)s::jsonb))))
               limit %(most)s
           ) as w
       ) as waiting,
       (
           select count(*)
           from (
               select from deferral
               where triggerer_id is not null
                 and (%(scope)s::jsonb is null or exists (
                     select from dag_run r where r.run_key = deferral.run_key
                         and r.dag_id in (select dags_in_scope(%(scope)s::jsonb))))
               limit %(most)s
           ) as r
       ) as running
