"""Loads a file's DAGs, and explains why one cannot be loaded."""
