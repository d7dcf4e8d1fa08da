-- A new key signs from now on; of those before it the newest stays, or none. Under the lock of the table.
with gone as (
    delete from token_key
    where not %(keep)s or key_id < (select max(key_id) from token_key)
    returning key_id
), made as (
    insert into token_key (key_id, value) values (%(key_id)s, %(value)s)
    returning key_id
)
select made.key_id, array(select key_id from gone) from made
