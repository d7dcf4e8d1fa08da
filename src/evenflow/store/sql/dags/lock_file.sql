-- The fingerprint that this file has now. Locked, so that two results of one file come one after the other.
select fingerprint from dag_file where bundle = %(bundle)s and file = %(file)s for no key update
