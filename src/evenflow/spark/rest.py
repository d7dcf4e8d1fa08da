"""The REST server of a standalone master (``spark.master.rest.enabled=true``): it takes drivers, tells of them and kills them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenflow.errors import SparkMasterAway, SparkUnavailable
from evenflow.spark.limits import MASTER_ANSWERS

PYTHON_DRIVER = (
    "org.apache.spark.deploy.PythonRunner"  # runs a file with a Python of the worker's host, within a JVM of the master's
)


@dataclass(frozen=True, slots=True)
class RestServer:
    url: str

    def submit(self, file: Path, arguments: list[str], *, master: str, properties: dict[str, str]) -> str:
        """The id of the driver. ``properties`` stand in its arguments, where every user of its host reads them. Raises
        :class:`SparkUnavailable`, also when it is not known whether there is one.
        """
        told = self._ask(
            "create",
            {
                "action": "CreateSubmissionRequest",
                "clientSparkVersion": _version(),
                "mainClass": PYTHON_DRIVER,
                "appResource": file.as_uri(),
                "appArgs": [str(file), "", *arguments],
                "environmentVariables": {},
                "sparkProperties": {"spark.master": master, "spark.jars": "", **properties},
            },
        )
        if not told.get("success"):
            raise SparkUnavailable(f"The Spark master at {self.url} took no driver: {str(told.get('message'))[:200]}")
        return str(told["submissionId"])

    def state(self, submission_id: str) -> str:
        """``SUBMITTED``, ``RUNNING``, ``FINISHED``, ``FAILED``, ``KILLED``, ``ERROR``, or ``NOT_FOUND``."""
        told = self._ask(f"status/{quote(submission_id, safe='')}")
        return str(told.get("driverState") or "NOT_FOUND")

    def kill(self, submission_id: str) -> None:
        self._ask(f"kill/{quote(submission_id, safe='')}", {})

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/v1/submissions/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="GET" if body is None else "POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=MASTER_ANSWERS) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace")
            raise SparkUnavailable(f"The Spark master at {self.url} refused: status {error.code}, {said[:200]}") from None
        except (OSError, HTTPException) as error:
            raise SparkMasterAway(
                f"No Spark master's REST server answers at {self.url} ({getattr(error, 'reason', error)}). Start the master with "
                "spark.master.rest.enabled=true, or name its address in the connection: ?rest=http://HOST:6066"
            ) from None
        except ValueError:
            told = None
        if not isinstance(told, dict) or "action" not in told:
            raise SparkUnavailable(f"What answers at {self.url} is no REST server of a Spark master. Its port is 6066 by default.")
        return told


def _version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "4.0.0"  # this host needs none; the server only writes it down
