"""``self.log`` of what authors subclass: operators, sensors, hooks, triggers and notifiers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


class Logged:
    """Has a log, as in Airflow. A class that has another use for the name keeps its own."""

    @functools.cached_property
    def log(self) -> logging.Logger:
        """Named after the class. What is logged while a task runs is in the log of the task."""
        import logging

        kind = type(self)
        return logging.getLogger(f"{kind.__module__}.{kind.__qualname__}")
