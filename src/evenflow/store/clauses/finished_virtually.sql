-- The states in which virtual instances have finished: those of a task that is removed as a whole wait for it to expand anew.
('success', 'failed', 'skipped', 'upstream_failed')
