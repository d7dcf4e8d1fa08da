"""What a launcher and Celery workers have to agree on: the name of the task, whose only argument is the epoch of a try."""

from __future__ import annotations

TASK = "evenflow.run"
