-- A new password, as Argon2id has it.
update user_account set password = %(password)s where name = %(name)s and password = coalesce(%(shown)s, password) returning name
