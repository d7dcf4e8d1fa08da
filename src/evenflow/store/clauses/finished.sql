-- The states in which a task instance has finished (core/states.py).
('success', 'failed', 'skipped', 'upstream_failed', 'removed')
