-- Unclaimed tries are to be sent again at the next look, because sending them failed or the sent work is gone.
update dispatch set sent_at = null where epoch = any(%(epochs)s::bigint[]) and worker_id is null
