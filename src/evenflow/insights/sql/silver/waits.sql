-- Each time that a task instance could have begun and had to wait for its limits, from when to when.
with waiting as (
    select m.run_key, m.task_index, m.map_index, m.try_number + 1 as try_number, m.dag_id, m.version_key, m.at_us as from_us, m.next_us as until_us,
           case when m.event = 'ordinary_resume' then 1 else 0 end as resumes
    from moves m
    where m.state = 'scheduled' and m.next_us is not null
    union all
    select m.run_key, m.task_index, m.map_index, m.try_number, m.dag_id, m.version_key, greatest(i.ready_us, coalesce(m.before_us, i.ready_us)), m.at_us, 0
    from moves m
    join instances i on i.run_key = m.run_key and i.task_index = m.task_index and i.map_index = m.map_index
    where m.event = 'grant' and m.before = 'none'
)
select run_key, task_index, map_index, try_number, dag_id, version_key, from_us, until_us, resumes from waiting where until_us > from_us
