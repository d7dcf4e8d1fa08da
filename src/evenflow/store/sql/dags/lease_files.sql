-- Files to parse: changed since they were parsed, the least recently parsed first, leased ones skipped. SKIP LOCKED: another lease has it.
with chosen as (
    select bundle, file
    from dag_file
    where bundle = %(bundle)s and parsed is distinct from fingerprint and (lease_until is null or lease_until < now())
    order by parsed_at nulls first, file
    limit %(limit)s
    for no key update skip locked
)
update dag_file f
set lease_until = now() + make_interval(secs => %(lease_s)s), lease_by = %(service_id)s
from chosen
where f.bundle = chosen.bundle and f.file = chosen.file
returning f.file, f.fingerprint
