-- Of these objects and folders those that a value refers to.
select object from xcom where object = any(%(names)s::text[])
union all
select folder from xcom where folder = any(%(names)s::text[])
