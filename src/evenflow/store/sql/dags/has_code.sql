-- Whether an archive is here. The caller is about to store a version of it; until then retention/delete_code leaves it.
update code set created_at = now() where code_hash = %(code_hash)s returning true
