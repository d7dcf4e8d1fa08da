-- Of these objects those that a value refers to.
select object from xcom where object = any(%(names)s::text[])
