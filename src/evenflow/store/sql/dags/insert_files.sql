-- The files of a bundle as they are now. In the order of names, so that two processors cannot wait for each other.
insert into dag_file (bundle, file, fingerprint)
select %(bundle)s, file, fingerprint
from unnest(%(files)s::text[], %(fingerprints)s::text[]) as f (file, fingerprint)
order by file
on conflict (bundle, file) do update set fingerprint = excluded.fingerprint
where dag_file.fingerprint <> excluded.fingerprint
