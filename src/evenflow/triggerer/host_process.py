"""What runs inside the templates of a triggerer and their children, the hosts: ``python -m evenflow.triggerer.host_process FD``.

A template loads one DAG file, or none for the built-in triggers; each host runs many triggers in one event loop. A host has no
database and no token, and one connection, to its triggerer, which may send at any time:

    triggerer  {"start": true} + [{"key", "path", "kwargs"}, ...]
    triggerer  {"stop": [key, ...]}                          each is answered by how the trigger ends
    host       {"say": "fired", "key"} + event | {"say": "failed", "key", "error"} | {"say": "stopped", "key"}
    host       {"say": "log", "key"} + lines
    host       {"say": "ask", "number": n, "key", "question"} + arguments
                                                             -> {"answer": n} + answer, or {"answer": n, "error", "status"}
    host       {"say": "blocked", "key": or null, "seconds"} + where       the loop stands still in a step of this trigger
    host       {"say": "alive"}                              regularly
    host       {"say": "ended"}                              when the triggerer has gone

A key is one claim of one trigger. Values are JSON. The triggerer accepts what :mod:`evenflow.triggerer.said` lets through.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.template import NotPrepared, serve_template
from evenflow.forking.tracebacks import describe_failure
from evenflow.sdk.default_timezone import set_default_timezone
from evenflow.sdk.loading.loader import load_file
from evenflow.triggerer.capture import TriggerOutput
from evenflow.triggerer.host_loop import HostLoop

# As in the log of a try, because both go to the same task's log.
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def prepare(config: FrameHeader) -> TriggerOutput:
    output = TriggerOutput(sys.stdout)
    sys.stdout = sys.stderr = output
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=output)
    set_default_timezone(config["default_timezone"])
    if config["file"]:
        root = Path(config["root"]).resolve()
        file = root / config["file"]
        try:
            load_file(file, root)
        except BaseException as error:
            failure = describe_failure(error, file, root)
            raise NotPrepared(f"cannot import DAG file {config['file']}: {failure.summary}", failure.trace) from error
    return output


def run(output: TriggerOutput, _: FrameHeader, link: Link) -> tuple[FrameHeader, bytes]:
    async def serve() -> None:
        await HostLoop(link, output).serve()

    asyncio.run(serve())
    return {"say": "ended"}, b""


if __name__ == "__main__":
    serve_template(prepare, run)
