-- Whether the try "d" stands still, by what is frozen: the system, or its queue, DAG or pool. The statement says what "closed" is.
exists (
    select from closed f
    where f.kind = 'system' or f.kind = 'queue' and f.name = d.queue
       or f.kind = 'dag' and f.name = (select dag_id from dag_run where dag_run.run_key = d.run_key)
       or f.kind = 'pool' and f.name = (select name from concurrency_limit where limit_id = d.holds[1]))
