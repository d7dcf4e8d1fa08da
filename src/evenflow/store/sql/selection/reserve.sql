-- The first of a thousand numbers, which belong to the caller alone.
select nextval(%(sequence)s::regclass)
