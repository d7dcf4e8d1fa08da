-- The files of a bundle as they are now. In the order of names, so that two processors cannot wait for each other. A file that
-- changed is free: the processor that has leased it loads an old content.
insert into dag_file (bundle, file, fingerprint)
select %(bundle)s, file, fingerprint
from unnest(%(files)s::text[], %(fingerprints)s::text[]) as f (file, fingerprint)
order by file
on conflict (bundle, file) do update set fingerprint = excluded.fingerprint, lease_until = null, lease_by = null, leases = 0
where dag_file.fingerprint <> excluded.fingerprint
