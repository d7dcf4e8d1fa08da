"""Why a task waits, what would start next, and whether all counters are right: read from the database, decided by the core."""
