-- Files that their processor does not have as they were leased: free at once.
update dag_file f
set lease_until = null, lease_by = null, leases = greatest(leases - 1, 0)
from unnest(%(lacking_bundles)s::text[], %(lacking_files)s::text[]) as l (bundle, file)
where f.bundle = l.bundle and f.file = l.file and f.lease_by = %(service_id)s
