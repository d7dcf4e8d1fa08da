-- An archive, named by what it holds; one that is here was delivered again.
insert into code (code_hash, archive) values (%(code_hash)s, %(archive)s) on conflict (code_hash) do update set created_at = now()
