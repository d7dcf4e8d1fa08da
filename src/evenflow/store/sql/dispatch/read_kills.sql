-- The tries of these workers whose processes are to be ended.
select worker_id, epoch from dispatch where worker_id = any(%(workers)s::bigint[]) and kill
