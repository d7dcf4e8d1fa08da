-- An archive, named by what it holds.
insert into code (code_hash, archive) values (%(code_hash)s, %(archive)s) on conflict (code_hash) do nothing
