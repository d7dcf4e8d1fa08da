-- Files to parse: changed since they were parsed, the least recently parsed first; files that a living processor has leased are
-- skipped, and those that this one lacks. A file of which several leases ended without a result is broken until its content
-- changes: a processor that loads it may never come back. SKIP LOCKED: another lease takes it now.
with chosen as (
    select f.bundle, f.file
    from dag_file f
    where f.bundle = any(%(bundles)s::text[]) and f.parsed is distinct from f.fingerprint
      and (f.lease_until is null or f.lease_until < now()
           or not exists (select from service s
                          where s.service_id = f.lease_by and {{is_healthy}}))
      and not exists (select from unnest(%(lacking_bundles)s::text[], %(lacking_files)s::text[]) as l (bundle, file)
                      where l.bundle = f.bundle and l.file = f.file)
    order by f.parsed_at nulls first, f.bundle, f.file
    limit %(limit)s
    for no key update of f skip locked
),
taken as (
    update dag_file f
    set leases = f.leases + 1, lease_until = now() + make_interval(secs => %(file_lease_s)s), lease_by = %(service_id)s
    from chosen
    where f.bundle = chosen.bundle and f.file = chosen.file and f.leases < %(most)s
    returning f.bundle, f.file, f.fingerprint
),
given_up as (
    update dag_file f
    set parsed = f.fingerprint, parsed_at = now(), lease_until = null, lease_by = null, error_line = null, warnings = null, wants = null,
        error = format('%%s was given to processors %%s times, and no result came of it: loading it may end whoever does. Change the file.',
                       f.file, f.leases)
    from chosen
    where f.bundle = chosen.bundle and f.file = chosen.file and f.leases >= %(most)s
)
select bundle, file, fingerprint from taken
