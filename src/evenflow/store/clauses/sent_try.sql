-- What is sent of the try "d", of the run "r" and its task "k": the columns of Launch.
d.epoch, d.sends, d.queue, d.priority, r.dag_id, r.run_id, k.task_id, k.operator, d.map_index, d.try_number
