"""The auditor over REST and on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from evenflow.client.rest import RestClient


async def test_an_audit_answers_what_is_wrong(api_url: str, operator_token: str, world: Any) -> None:
    async with RestClient(api_url, operator_token) as client:
        assert (await client.get_audit()).findings == []
        world.conn.execute("update concurrency_limit set used = 3 where kind = 'pool' and name = 'default_pool'")
        (finding,) = (await client.get_audit()).findings
        assert (finding.kind, finding.object, finding.found, finding.expected) == ("limit", "pool default_pool", "3 used", "0 used")
        assert (await client.get_status()).version  # the connection went back as it was


@pytest.mark.system
async def test_the_command_says_what_is_wrong_and_exits_with_1(api_url: str, operator_token: str, world: Any) -> None:
    ours = {**os.environ, "EVENFLOW_API_URL": api_url, "EVENFLOW_TOKEN": operator_token, "COLUMNS": "200"}

    async def audit(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "evenflow", "audit", *arguments]
        return await asyncio.to_thread(subprocess.run, command, env=ours, capture_output=True, text=True, timeout=60, check=False)

    fine = await audit()
    assert (fine.returncode, fine.stdout) == (0, "Every counter is what it counts, and every lane where it should be\n")
    world.conn.execute("update concurrency_limit set used = 3 where kind = 'pool' and name = 'default_pool'")
    wrong = await audit()
    assert wrong.returncode == 1
    assert "pool default_pool" in wrong.stdout
    assert json.loads((await audit("--json")).stdout)["findings"][0]["expected"] == "0 used"
