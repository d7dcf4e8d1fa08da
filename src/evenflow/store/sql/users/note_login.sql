-- The person has logged in now. Their password is stored anew when the parameters of Argon2id have changed since.
update user_account set logged_in_at = now(), password = coalesce(%(password)s, password) where name = %(name)s
