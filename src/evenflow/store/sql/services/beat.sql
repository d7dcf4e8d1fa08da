-- A service lives; answers its state, when this was, in seconds since 1970, and of a worker whether all its claims are refused for
-- now. One that was lost or has stopped stays so. Draining is asked for by either side and is not taken back.
update service
set beat_at = now(),
    state = case when %(state)s = 'active' then state else %(state)s end,
    detail = case when %(detail)s::jsonb = '{}' then detail else %(detail)s::jsonb end
where service_id = %(service_id)s and kind = %(kind)s and state in ('active', 'draining')
returning state, extract(epoch from beat_at)::float8 as at_s,
          kind = 'worker' and (fence_until > now() or exists (
              select from service_state c where c.kind = 'worker' and c.name = service.name and c.state = 'frozen'
          )) is true as closed
