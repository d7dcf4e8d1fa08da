-- The clock after a tick. The caller has it locked.
update lease_clock set ticked_at = to_timestamp(%(ticked_at)s), counted_from = to_timestamp(%(counted_from)s)
