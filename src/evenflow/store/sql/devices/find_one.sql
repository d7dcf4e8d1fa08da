-- The login that shows a person this code and is not answered yet.
select machine, address, role, days, began_at, expires_at
from device_login
where user_digest = any(%(user_digests)s) and expires_at > now() and is_approved is null
