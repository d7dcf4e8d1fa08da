-- What is stored under the name already is replaced, whichever try it is of.
on conflict (run_key, task_index, map_index, key) do update
set value = excluded.value, length = excluded.length, epoch = excluded.epoch, created_at = now(), secret = excluded.secret,
    object = excluded.object, size = excluded.size
