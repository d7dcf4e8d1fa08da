"""The triggerer: it runs the triggers of deferred tasks, thousands in a process, and reports their events."""
