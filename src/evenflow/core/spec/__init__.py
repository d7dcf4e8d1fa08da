"""DAGs after parsing: which specs a scheduler can follow, how large they may be, and how two differ."""
