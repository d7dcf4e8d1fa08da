"""Sends tries to the executors that do not ask for them: to Celery a message each, to Kubernetes a pod."""
