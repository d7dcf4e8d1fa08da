-- What logging in needs to know of a person.
select role, password, is_disabled from user_account where name = %(name)s
