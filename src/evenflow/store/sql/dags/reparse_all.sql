-- What files mean has changed: all are loaded once more. What processors have in hand is leased again, and their results dropped.
update dag_file set parsed = null, leases = 0, lease_until = null, lease_by = null
