-- A connection or variable has changed: parse the files once more that asked for it while they were loaded.
update dag_file set parsed = null, leases = 0 where asked is not null and %(asked)s = any(asked)
