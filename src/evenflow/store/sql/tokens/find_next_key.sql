-- The number of the next key. Under the lock of the table.
select coalesce(max(key_id), 0) + 1 from token_key
