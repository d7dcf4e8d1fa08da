-- These tokens are in use. To the hour, so that a busy one costs a write an hour.
update token
set used_at = now()
where token_id = any(%(token_ids)s) and (used_at is null or used_at < now() - interval '1 hour')
