-- A service that was there at a time and has not signed off since: its lease has lasted over a gap in the count.
select 1 from service where state in ('active', 'draining') and started_at <= to_timestamp(%(at_s)s) limit 1
