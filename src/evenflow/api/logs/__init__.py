"""Logs of tasks: how they are stored, and how they are read while they are written."""
