"""Processes for user code: forked from warm templates, watched, stopped, and verified to be dead."""
