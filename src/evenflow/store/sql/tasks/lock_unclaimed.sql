-- Which of these tries no worker has claimed, with what they hold. FOR UPDATE locks them: this waits for a claim that is under way
-- and then sees it, and none begins until this transaction has ended. Tries that a person ends are left alone.
select epoch, queue, holds, pool_slots, class = 0 as resumes, now()::text as at
from dispatch
where epoch = any(%(epochs)s::bigint[]) and worker_id is null and not kill
order by epoch
for update
