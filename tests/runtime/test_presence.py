"""Who runs on a home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.errors import AlreadyRunning, StartingOrStopping
from evenflow.runtime.up.presence import UpPresence, choose_port, claim, find, guest, listen, port_of, withdraw

HERE = UpPresence(pid=os.getpid(), api_url="http://127.0.0.1:1234", dags="/flows", bundle="flows-1")


def test_it_is_found_while_it_lasts(tmp_path: Path) -> None:
    assert find(tmp_path) is None
    with claim(tmp_path) as publish:
        assert find(tmp_path) is None, "not ready"
        publish(HERE)
        assert find(tmp_path) == HERE
    assert find(tmp_path) is None


def test_a_second_one_is_told_where_the_first_is(tmp_path: Path) -> None:
    with claim(tmp_path) as publish:
        with pytest.raises(AlreadyRunning, match="just being started or stopped"), claim(tmp_path):
            pass
        publish(HERE)
        with pytest.raises(AlreadyRunning) as caught, claim(tmp_path):
            pass
    assert str(caught.value) == (
        f"Evenflow already runs on {tmp_path}: http://127.0.0.1:1234 (pid {os.getpid()}, DAG folder /flows). "
        f"Use that one, stop it (kill {os.getpid()}), or set EVENFLOW_HOME to another directory."
    )


def test_one_that_was_killed_is_forgotten(tmp_path: Path) -> None:
    script = f"""if True:
        import os, signal
        from pathlib import Path
        from evenflow.runtime.up.presence import UpPresence, claim
        with claim(Path({str(tmp_path)!r})) as publish:
            publish({HERE!r})
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert find(tmp_path) is None
    with claim(tmp_path):
        assert find(tmp_path) is None


def test_it_does_not_withdraw_from_its_guests(tmp_path: Path) -> None:
    with claim(tmp_path) as publish:
        publish(HERE)
        with guest(tmp_path) as first, guest(tmp_path) as second:
            assert first == second == HERE
            assert not withdraw(tmp_path)
            assert find(tmp_path) == HERE
        assert withdraw(tmp_path)
        with guest(tmp_path) as late:
            assert late is None
        with pytest.raises(StartingOrStopping), claim(tmp_path):
            pass


def test_a_port_that_is_taken() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            AlreadyRunning, match=f"cannot listen on 127.0.0.1:{port}: Address already in use.*evenflow up --port {port + 1}"
        ):
            listen("127.0.0.1", port)
    assert 20_000 <= choose_port("127.0.0.1", 0, who="It", way="") < 32_768  # no connection takes it meanwhile


def test_a_port_is_its_own_as_soon_as_it_is_known() -> None:
    """No other program takes it before a service serves there."""
    with listen("127.0.0.1", 0) as ours, pytest.raises(AlreadyRunning):
        listen("127.0.0.1", port_of(ours))
