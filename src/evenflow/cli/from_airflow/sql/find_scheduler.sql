-- When a scheduler that counts as running has beaten last.
select max(latest_heartbeat) as beat from job where job_type = 'SchedulerJob' and state = 'running'
