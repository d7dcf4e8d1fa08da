"""Pods of tries: what an author may say of one, and what its end means."""
