"""The world of the scheduler's own tests."""

from tests.scheduler.conftest import world

__all__ = ["world"]
