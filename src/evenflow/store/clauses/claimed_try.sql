-- What a worker is told of its try "d", of the run "r" and, if the task is mapped, of "m": the columns of ClaimedTry, but for the
-- resume.
d.epoch, d.run_key, d.task_index, d.map_index, d.try_number, m.length, d.class, r.version_key, r.dag_id, r.run_id, r.run_type,
    r.params,
r.run_after, r.logical_date, r.data_interval_start, r.data_interval_end, r.traceparent
