"""What clouds offer, as processes of this machine: moto serves S3 and the secrets of AWS, over HTTP as they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ports import lasting_port
from tests.waiting import wait_until

# moto takes any credentials; botocore looks for real ones elsewhere, slowly, where there are none.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "a-secret-of-aws", "AWS_DEFAULT_REGION": "eu-central-1"}


class Cloud:
    """``environment`` leads clients to it. It can be made to stand still."""

    def __init__(self, url: str, process: subprocess.Popen[bytes]) -> None:
        self.url, self._process = url, process
        self.environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": url}

    def stand_still(self) -> None:
        """Returns when none of its threads runs any more."""
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        wait_until(lambda: all(" T " in (task / "stat").read_text() for task in tasks.iterdir()), "it stands still")

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def make_bucket(self, name: str) -> None:
        self._request("PUT", f"/{name}")

    def keys(self, bucket: str) -> list[str]:
        """Of all objects, sorted."""
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="eu-central-1",
        )
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return sorted(item["Key"] for page in pages for item in page.get("Contents", ()))

    def answers(self) -> bool:
        with suppress(OSError):
            self._request("GET", "/moto-api/")
            return True
        return False

    def _request(self, method: str, path: str) -> None:
        """The first of a service may take long: moto imports it then."""
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(urllib.request.Request(f"{self.url}{path}", method=method), timeout=60).close()


@contextmanager
def running_cloud() -> Iterator[Cloud]:
    port = lasting_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **CREDENTIALS},
    )
    cloud = Cloud(f"http://127.0.0.1:{port}", process)
    try:
        wait_until(cloud.answers, "moto's server answers")
        yield cloud
    finally:
        cloud.go_on()
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def shared_cloud() -> Iterator[Cloud]:
    with running_cloud() as cloud:
        cloud.make_bucket("logs")
        yield cloud


@pytest.fixture
def cloud(shared_cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    for name, value in shared_cloud.environment.items():
        monkeypatch.setenv(name, value)
    yield shared_cloud
    shared_cloud.go_on()
