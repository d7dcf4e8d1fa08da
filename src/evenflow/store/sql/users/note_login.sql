-- The person has logged in now. Their password is stored anew when the parameters of Argon2id have changed since.
update user_account set logged_in_at = now(), password = coalesce(%(renewed)s, password)
where name = %(user)s and password = %(shown)s and not is_disabled
returning name
