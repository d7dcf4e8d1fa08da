-- How far a file is: whether a processor reads it now, when one last did, and what was wrong with it.
select coalesce(lease_until > now(), false) as is_busy, parsed_at, error
from dag_file
where bundle = %(bundle)s and file = %(file)s
