-- Which pools and executors are shared by tenants, or have what waits there age: all that was ever said of them.
select s.limit_id, l.kind::text, l.name, s.aging_s, s.share_by, array(select jsonb_object_keys(s.weights)) as weighted
from sharing s
join concurrency_limit l using (limit_id)
