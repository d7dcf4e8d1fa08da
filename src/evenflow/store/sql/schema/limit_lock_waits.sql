-- For this transaction: who waits for a lock on a table makes all wait who come later, so it does not wait for long.
select set_config('lock_timeout', %(timeout)s, true)
