-- The fences of a plan that have held until now hold for this time again.
update service
set fence_until = now() + make_interval(secs => %(for_s)s)
where kind = 'worker' and state in ('active', 'draining') and fence = %(plan)s and fence_until > now()
