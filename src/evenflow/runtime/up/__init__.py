"""``evenflow up``: everything on one machine, each service as a child process."""
