"""What user code can see of Evenflow: nothing that would let it act as somebody else."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from evenflow.forking.sandbox import user_environment
from tests.worker.conftest import StartWorker
from tests.worker.world import World, wait_for

SECRETS = {"EVENFLOW_TOKEN": "s3cret-token", "EVENFLOW_DATABASE_URL": "postgresql://u:s3cret-pw@db/evenflow"}

OPEN = "import os\nfds = [int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]\n"


async def test_no_secret_in_the_environment(
    world: World, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither in what the task reads, nor in what the kernel shows of it and of its template."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("EVENFLOW_CONN_WAREHOUSE", "postgresql://warehouse/sales")
    await start_worker()
    epoch = world.task(
        "import os\nprint(sorted(os.environ.items()))\nprint('PIDS', os.getpid(), os.getppid(), flush=True)\n"
        + wait_for(tmp_path / "go")
    )
    log = await world.logged(epoch, "PIDS")
    pids = log.partition("PIDS")[2].split()
    seen = log + "".join(_shown_by_the_kernel(pid) for pid in pids)
    assert "s3cret" not in seen
    assert "EVENFLOW_CONN_WAREHOUSE" in log
    (tmp_path / "go").touch()
    await world.exit_of(epoch)


async def test_no_token_in_the_memory_of_a_task(world: World, start_worker: StartWorker, worker_token: str) -> None:
    """R-CS1: neither the worker's token nor the try's own is anywhere in the process."""
    await start_worker()
    epoch = world.task(
        """
        import re
        mine = [b".".join(b"eyJ" + 20 * letter for letter in (b"q", b"q", b"q"))]  # so that the search is known to find
        found = set()
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
            for line in maps:
                start, end = (int(x, 16) for x in line.split()[0].split("-"))
                if line.split()[1].startswith("rw"):
                    try:
                        memory.seek(start)
                        found.update(re.findall(rb"eyJ[\\w-]{10,}[.]eyJ[\\w-]{10,}[.]", memory.read(end - start)))
                    except OSError:
                        pass
        return sorted(each[:23].decode() for each in found)
        """
    )
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == ["eyJ" + 20 * "q"]
    assert re.match(r"eyJ[\w-]{10,}[.]eyJ[\w-]{10,}[.]", worker_token), "what is looked for has the form of a token"


async def test_a_task_holds_no_descriptor_of_the_worker(world: World, start_worker: StartWorker) -> None:
    """Input, output, its link, and what Python itself opened."""
    await start_worker()
    epoch = world.task(f"{OPEN}return sorted(os.readlink(f'/proc/self/fd/{{n}}').split(':')[0] for n in fds)")
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert world.xcom(epoch) == ["/dev/null", "pipe", "pipe", "socket"]


async def test_nor_does_a_program_that_it_starts(world: World, start_worker: StartWorker, tmp_path: Path) -> None:
    """A program could speak for the task over its link."""
    await start_worker()
    epoch = world.task(f"import os\nos.system('for fd in /proc/self/fd/*; do readlink $fd; done > {tmp_path / 'fds'}')")
    assert (await world.exit_of(epoch))["outcome"] == "success"
    assert "socket" not in (tmp_path / "fds").read_text()


def test_the_environment_of_user_code() -> None:
    environ = {"PATH": "/bin", "EVENFLOW_HOME": "/data", "EVENFLOW_CONN_A": "spark://a", **SECRETS}
    assert user_environment(environ) == {"PATH": "/bin", "EVENFLOW_CONN_A": "spark://a"}


async def test_forged_frames_harm_only_the_try(world: World, start_worker: StartWorker) -> None:
    """A task that writes to its link what no task says is killed; the worker goes on."""
    await start_worker()
    for forged in (b"\\0\\0\\0\\2\\0\\0\\0\\0[]", b"\\xff" * 8, b'\\0\\0\\0\\x11\\0\\0\\0\\0{\\"ask\\":\\"secrets\\"}'):
        text = forged.decode("ascii")
        link = "next(n for n in fds if os.readlink(f'/proc/self/fd/{n}').startswith('socket'))"
        epoch = world.task(f"{OPEN}import time\nos.write({link}, b'{text}')\ntime.sleep(600)")
        ended = await world.exit_of(epoch)
        assert ended["outcome"] == "failed"
        assert ended["reason"].startswith("the process sent its worker something that is no message")
    assert (await world.exit_of(world.task("pass")))["outcome"] == "success"


async def test_two_tries_at_once_do_not_mix(world: World, start_worker: StartWorker) -> None:
    await start_worker(slots=8)
    epochs = [world.task(f"print('I am {n}')\nti.xcom_push('n', {n})\nreturn ti.xcom_pull('t', key='n')") for n in range(8)]
    await asyncio.gather(*(world.exit_of(epoch) for epoch in epochs))
    for n, epoch in enumerate(epochs):
        assert world.xcom(epoch) == n
        assert await world.logged(epoch, "I am") == f"I am {n}\n"


def _shown_by_the_kernel(pid: str) -> str:
    return "".join(Path(f"/proc/{pid}/{file}").read_text() for file in ("environ", "cmdline"))
