"""Like a queue: each line of a file is an event, and the trigger takes all that are there before it waits."""

import asyncio
import os

from airflow.triggers.base import BaseEventTrigger, TriggerEvent


class LinesTrigger(BaseEventTrigger):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def serialize(self):
        return "lines_of_a_file.LinesTrigger", {"path": self.path}

    async def run(self):
        seen = 0
        while True:
            for line in _lines(self.path)[seen:]:
                seen += 1
                if line == "break":
                    raise ValueError("the queue is broken")
                yield TriggerEvent({"line": line})
            await asyncio.sleep(0.1)


def _lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().splitlines()
