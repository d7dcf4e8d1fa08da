-- Tries that nobody has claimed are to be sent again at the next look, for sending them failed or what was sent is gone.
update dispatch set sent_at = null where epoch = any(%(epochs)s::bigint[]) and worker_id is null
