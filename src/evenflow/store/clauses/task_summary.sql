-- What a list tells of the task instance "t", which has no row while it is virtual, beside its name and state; "s" is its worker.
coalesce(t.try_number + (t.state = 'up_for_reschedule')::int, 0) as try_number,
    t.queued_at, t.started_at, t.ended_at, t.reason, coalesce(t.losses, 0) as losses,
    extract(epoch from coalesce(t.ended_at, now()) - t.started_at)::float8 as elapsed_s, s.name as worker
