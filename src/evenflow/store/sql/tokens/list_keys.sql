-- The keys that sign tokens, sealed, the oldest first.
select key_id, value from token_key order by key_id
