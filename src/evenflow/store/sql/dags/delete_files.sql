-- Deletes files that are not in the bundle any longer.
delete from dag_file where bundle = %(bundle)s and file <> all(%(files)s::text[])
