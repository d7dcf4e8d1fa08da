"""The built-in triggers."""
