-- Deletes a sealed value; answers its name when there was one.
delete from sealed_value where kind = %(kind)s and name = %(name)s returning name
