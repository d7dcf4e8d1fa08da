-- Triggers that wait for a triggerer and are due, and those that one runs; counting ends at the most.
select (
           select count(*)
           from (
               select from deferral
               where purpose is null and triggerer_id is null and due_at <= now()
               limit %(most)s
           ) as w
       ) as waiting,
       (select count(*) from (select from deferral where triggerer_id is not null limit %(most)s) as r) as running
