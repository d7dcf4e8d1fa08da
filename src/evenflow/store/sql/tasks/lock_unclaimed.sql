-- Which of these tries no worker has claimed, with what they hold. FOR UPDATE locks them: a claim that is under way is waited for and then seen, and none begins
-- until this transaction has ended. What somebody ends is left to that.
select epoch, queue, holds, pool_slots, class = 0 as resumes, now()::text as at
from dispatch
where epoch = any(%(epochs)s::bigint[]) and worker_id is null and not kill
order by epoch
for update
