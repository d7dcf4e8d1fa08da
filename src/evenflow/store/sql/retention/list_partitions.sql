-- The partitions of history, by name.
select c.relname
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'task_event'::regclass
order by c.relname
