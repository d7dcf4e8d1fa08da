-- What somebody wants of the task instances of these tries, for when their processes have ended.
update dispatch set intent = %(intent)s::jsonb where epoch = any(%(epochs)s::bigint[])
