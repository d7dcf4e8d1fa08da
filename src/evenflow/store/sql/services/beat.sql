-- A service lives. One that was lost or has stopped stays so. Draining is asked for by either side and is not taken back.
update service
set beat_at = now(),
    state = case when %(state)s = 'active' then state else %(state)s end,
    detail = case when %(detail)s::jsonb = '{}' then detail else %(detail)s::jsonb end
where service_id = %(service_id)s and kind = %(kind)s and state in ('active', 'draining')
returning state
