-- Files to parse: changed since they were parsed, or of a DAG that wants more runs computed; the least recently parsed first. Files
-- that a living processor has leased are skipped, and those that this one lacks, and for a while those that cannot be loaded to
-- compute runs. A file of which several leases ended without a result is broken until its content changes: a processor that loads
-- it may never come back. SKIP LOCKED: another lease takes it now.
with wanted as (
    select bundle, file from dag_file where bundle = any(%(bundles)s::text[]) and parsed is distinct from fingerprint
    union
    select f.bundle, f.file
    from dag d
    join dag_file f using (bundle, file)
    where d.bundle = any(%(bundles)s::text[]) and d.wants_forecast and d.is_active
      and (f.error is null or f.parsed_at < now() - make_interval(secs => %(again_s)s))
),
chosen as (
    select f.bundle, f.file
    from dag_file f
    join wanted using (bundle, file)
    where (f.lease_until is null or f.lease_until < now()
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
    set parsed = f.fingerprint, parsed_at = now(), lease_until = null, lease_by = null, error_line = null, warnings = null,
        wants = null,
        error = format('%%s was given to processors %%s times, and no result came of it: loading it may end whoever does. '
                       'Change the file.', f.file, f.leases)
    from chosen
    where f.bundle = chosen.bundle and f.file = chosen.file and f.leases >= %(most)s
)
select t.bundle, t.file, t.fingerprint, coalesce(p.pasts, '{}') as pasts
from taken t
cross join lateral (
    select jsonb_object_agg(d.dag_id, jsonb_build_array(d.last_logical, coalesce(d.last_interval_end, d.last_logical))) as pasts
    from dag d
    where d.bundle = t.bundle and d.file = t.file and d.last_logical is not null
) as p
