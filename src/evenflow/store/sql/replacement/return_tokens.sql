-- Keys and tokens that were there before a restore are there again; a dump has none of its own.
with installed as (
    update installation set id = %(installation)s
), keys as (
    insert into token_key select * from jsonb_populate_recordset(null::token_key, %(keys)s::jsonb)
), tokens as (
    insert into token overriding system value select * from jsonb_populate_recordset(null::token, %(tokens)s::jsonb)
    returning token_id
)
select setval(pg_get_serial_sequence('token', 'token_id'), greatest(max(token_id), 1)) from tokens
