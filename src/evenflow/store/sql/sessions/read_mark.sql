-- What only a session has whose options have arrived, with all its time limits.
select current_setting(%(mark)s, true)
