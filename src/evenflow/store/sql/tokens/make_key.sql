-- The first key, sealed. Nothing happens when there is one.
insert into token_key (key_id, value)
select 1, %(value)s where not exists (select from token_key)
on conflict (key_id) do nothing
