-- The one that shows a person this code, while nobody has answered it.
select machine, address, role, days, began_at, expires_at
from device_login
where user_digest = any(%(user_digests)s) and expires_at > now() and is_approved is null
