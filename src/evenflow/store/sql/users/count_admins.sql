-- Admins who can log in.
select count(*)::int from user_account where role = 'admin' and not is_disabled
