-- The partitions of history that are of one day each, the oldest first.
select c.relname
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'task_event'::regclass and c.relname ~ '^task_event_[0-9]{8}$'
order by c.relname
