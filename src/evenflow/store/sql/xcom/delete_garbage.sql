-- Objects that are deleted.
delete from xcom_garbage where object = any(%(names)s::text[])
