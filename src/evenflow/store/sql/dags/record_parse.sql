-- A file was parsed, with this result.
update dag_file
set parsed = fingerprint, parsed_at = now(), parse_seconds = %(seconds)s, lease_until = null, lease_by = null,
    error = %(error)s, error_line = %(error_line)s, warnings = %(warnings)s, leases = 0, wants = %(wants)s
where bundle = %(bundle)s and file = %(file)s
