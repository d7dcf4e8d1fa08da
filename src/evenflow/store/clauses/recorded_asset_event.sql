-- What is told of the event "e" of the asset "a": the columns of RecordedAssetEvent.
jsonb_build_array(e.event_id) as place, e.event_id, e.asset, a.uri, e.at, e.extra, e.alias, e.partition, e.dag_id, e.run_id,
    e.task_id, e.map_index, e.actor
