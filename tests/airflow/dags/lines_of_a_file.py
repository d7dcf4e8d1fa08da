"""Like a queue: each line of a file is an event, and the trigger takes all that are there before it waits. The line `break` breaks
it once.
"""

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
                    _forget(self.path, line)
                    raise ValueError("the queue is broken")
                yield TriggerEvent({"line": line})
            await asyncio.sleep(0.1)


def _forget(path, line):
    with open(path, "r+") as file:
        kept = [one for one in file.read().splitlines() if one != line]
        file.seek(0)
        file.truncate()
        file.write("".join(f"{one}\n" for one in kept))


def _lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().splitlines()
