-- Whether no person can log in with a password yet.
select not exists (select from user_account)
