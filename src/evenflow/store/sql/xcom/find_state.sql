-- How often people have changed the run of this try, for what is known of its values holds until they do so again. No row when the
-- try is over.
select r.clears from dispatch d join dag_run r using (run_key) where d.epoch = %(epoch)s
