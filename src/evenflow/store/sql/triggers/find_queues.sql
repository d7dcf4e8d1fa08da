-- The queues in which triggers wait for a triggerer and are due, found by stepping from one queue to the next in the index.
with recursive step as (
    (select queue from deferral where purpose is null and triggerer_id is null order by queue limit 1)
    union all
    select (
        select d.queue from deferral d
        where d.purpose is null and d.triggerer_id is null and d.queue > step.queue
        order by d.queue
        limit 1
    )
    from step
    where step.queue is not null
)
select queue
from step
where queue is not null and exists (
    select from deferral d
    where d.queue = step.queue and d.purpose is null and d.triggerer_id is null and d.due_at <= now()
)
