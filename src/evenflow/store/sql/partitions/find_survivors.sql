-- Runs of a range of keys that are there: at most one more than a limit.
select run_key from dag_run where run_key >= %(first)s and run_key < %(last)s order by run_key limit %(most)s + 1
