-- Whether nobody can log in with a password yet.
select not exists (select from user_account)
