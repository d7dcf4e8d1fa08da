-- The keys and the list of tokens, and which Evenflow they are of: a restore leaves them as they are.
select coalesce((select jsonb_agg(k) from token_key k), '[]')::text as keys,
    coalesce((select jsonb_agg(t) from token t), '[]')::text as tokens,
       (select id from installation) as installation
