-- Of which span of a program outside the run is a part.
select traceparent from dag_run where run_key = %(run_key)s
