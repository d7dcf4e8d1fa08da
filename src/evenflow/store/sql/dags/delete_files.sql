-- Files that are in the bundle no more.
delete from dag_file where bundle = %(bundle)s and file <> all(%(files)s::text[])
