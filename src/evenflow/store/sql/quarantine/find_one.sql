-- Something that is set aside, and the run that it is, if it is one.
select run_key from quarantine where kind = %(kind)s and object = %(object)s
