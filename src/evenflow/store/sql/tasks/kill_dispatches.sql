-- The processes of these tries are to be ended; their exits will be reported.
update dispatch set kill = true where epoch = any(%(epochs)s::bigint[])
