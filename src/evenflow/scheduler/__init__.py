"""The scheduler: each turn is one transaction that applies reports, moves tasks and starts what can start."""
