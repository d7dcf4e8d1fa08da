-- The first of a thousand numbers that nobody else will get.
select nextval(%(sequence)s::regclass)
