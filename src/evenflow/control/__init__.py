"""What services of the control plane share that act in loops: how they have the database, and are known to it."""
