"""Why a task waits, what would start next, and whether all counters are right: asked of the database, decided by the core."""
