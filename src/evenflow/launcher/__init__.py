"""Sends tries to the executors that do not ask for them: one message each to Celery, one pod each to Kubernetes."""
