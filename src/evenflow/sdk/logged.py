"""``self.log`` of the classes that authors subclass: operators, sensors, hooks, triggers and notifiers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


class Logged:
    """Has a log, as in Airflow. A class with another use for the name keeps its own."""

    @functools.cached_property
    def log(self) -> logging.Logger:
        """The logger, named after the class. Its records during a task are in the log of the task."""
        import logging

        kind = type(self)
        return logging.getLogger(f"{kind.__module__}.{kind.__qualname__}")
