-- The order of moves "e" of a task instance, as they happened: what one transaction wrote may be of one moment.
e.at, e.epoch,
case when e.event in ('grant', 'resume', 'requeue') then 0 when e.event = 'start' then 1 when e.event = 'ready' then 3 else 2 end
