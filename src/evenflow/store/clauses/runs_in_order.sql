-- Which of the queued runs "q" of one DAG begins first.
q.priority desc, q.run_after, q.run_key
