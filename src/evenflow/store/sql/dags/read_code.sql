-- An archive.
select archive from code where code_hash = %(code_hash)s
