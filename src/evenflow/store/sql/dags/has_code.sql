-- Whether an archive is here.
select exists (select from code where code_hash = %(code_hash)s)
