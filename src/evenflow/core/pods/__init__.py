"""Pods of tries: an author's changes to them, and the meaning of their ends."""
