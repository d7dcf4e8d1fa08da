-- The files of a bundle that were parsed as they are now, as far as processors have told.
select file from dag_file where bundle = %(bundle)s and parsed = fingerprint
