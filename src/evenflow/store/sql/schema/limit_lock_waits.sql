-- This transaction does not wait for long for a lock on a table: while it waits, all that come later queue behind it.
select set_config('lock_timeout', %(timeout)s, true)
