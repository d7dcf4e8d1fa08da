-- A file was parsed, with this result. If a value has changed since the file asked for it, the file is parsed once more.
update dag_file
set parsed = case when exists (
        select from unnest(%(kinds)s::text[], %(names)s::text[], %(stamps)s::timestamptz[]) as a (kind, name, changed_at)
        left join sealed_value s using (kind, name)
        where s.changed_at is distinct from a.changed_at
    ) then null else fingerprint end,
    parsed_at = now(), parse_seconds = %(seconds)s, lease_until = null, lease_by = null,
    error = %(error)s, error_line = %(error_line)s, warnings = %(warnings)s, leases = 0, wants = %(wants)s, asked = %(asked)s
where bundle = %(bundle)s and file = %(file)s
