-- One sealed value by name.
select name, sealed, description, dags, changed_at, changed_by from sealed_value where kind = %(kind)s and name = %(name)s
