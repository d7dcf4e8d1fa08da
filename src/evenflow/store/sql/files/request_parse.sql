-- Have a file parsed once more, whether it changed or not. A parse that is under way may have read it before: then ask again later.
update dag_file
set parsed = null, leases = 0
where bundle = %(bundle)s and file = %(file)s
returning coalesce(lease_until > now(), false) as is_busy, parsed_at
