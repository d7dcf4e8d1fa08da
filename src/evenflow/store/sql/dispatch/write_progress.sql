-- What a running try says of its progress; answers nothing when the try is over.
insert into task_progress (run_key, task_index, map_index, epoch, payload)
select run_key, task_index, map_index, epoch, %(payload)s::jsonb
from dispatch
where epoch = %(epoch)s
on conflict (run_key, task_index, map_index) do update
set epoch = excluded.epoch, at = now(), payload = excluded.payload
returning epoch
