"""The shared parts of control-plane services that act in loops: their database connection, and their registration."""
