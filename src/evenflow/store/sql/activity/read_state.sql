-- What a session does at this moment. Between two statements of a transaction the scheduler computes: that is work.
select case when wait_event_type = 'Lock' then 'lock'
            when state in ('active', 'idle in transaction', 'idle in transaction (aborted)') then 'working'
            else 'idle' end as state
from pg_stat_get_activity(%(pid)s)
