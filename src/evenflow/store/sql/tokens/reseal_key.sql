-- Gives one key its new seal. Under the lock of the table.
update token_key set value = %(value)s where key_id = %(key_id)s
