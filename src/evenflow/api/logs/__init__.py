"""Logs of tasks: where they are stored and how they are read while they are written."""
