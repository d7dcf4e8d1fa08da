"""Streams of server-sent events: what moves, logs as they grow, and capacity."""
