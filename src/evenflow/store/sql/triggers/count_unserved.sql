-- Triggers that no triggerer has taken for a minute although they are due, with the queue of one of them; counting ends at the
-- most.
select count(*)::int, min(queue)
from (
    select queue from deferral
    where purpose is null and triggerer_id is null and due_at < now() - interval '1 minute'
    limit %(most)s
) as d
