-- Runs of a range of keys that are there: one more than so many at most.
select run_key from dag_run where run_key >= %(first)s and run_key < %(last)s order by run_key limit %(most)s + 1
