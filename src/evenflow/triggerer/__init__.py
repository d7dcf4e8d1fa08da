"""The triggerer: it runs the triggers that deferred tasks wait for, thousands in a process, and reports their events."""
