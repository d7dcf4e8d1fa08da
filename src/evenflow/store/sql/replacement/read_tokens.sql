-- The keys and the list of tokens, which a restore leaves as they are.
select coalesce((select jsonb_agg(k) from token_key k), '[]')::text as keys, coalesce((select jsonb_agg(t) from token t), '[]')::text as tokens
