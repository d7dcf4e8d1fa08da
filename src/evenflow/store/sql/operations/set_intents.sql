-- What a person wants of the task instances of these tries, once their processes have ended.
update dispatch set intent = %(intent)s::jsonb where epoch = any(%(epochs)s::bigint[])
