-- The tokens of this maker are needed for a while longer; answers whether one had lapsed meanwhile. One that was revoked stays so.
-- Renewed are those of which enough of the lease is gone, and those that are good for longer than one: the clock was set back.
update token t
set good_until = now() + make_interval(secs => %(lease)s)
from token before
where before.token_id = t.token_id and t.created_by = %(by)s and t.revoked_at is null and t.good_until is not null
  and t.good_until not between now() + make_interval(secs => %(lease)s::float8 - %(every)s::float8)
      and now() + make_interval(secs => %(lease)s)
returning before.good_until < now() as had_lapsed
