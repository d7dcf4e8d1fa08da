-- The processes of these tries are to be ended; their exits will be reported.
update dispatch set kill_at = coalesce(kill_at, now()) where epoch = any(%(epochs)s::bigint[])
