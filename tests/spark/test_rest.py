"""Ordering a driver of a standalone master that restarts meanwhile (R-SP6)."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from evenflow.errors import SparkMasterAway, SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import driver, runs, submission
from tests.ports import lasting_port
from tests.triggers.conftest import Server, serving

TAKEN = (200, {"action": "CreateSubmissionResponse", "success": True, "submissionId": "driver-7"})


def order(folder: Path, port: int) -> str | None:
    app = folder / "app.py"
    app.write_text("")
    conn = Connection.parse(
        "c", f"spark://127.0.0.1:7077?deploy_mode=cluster&rest=http://127.0.0.1:{port}&evidence={folder}/evidence"
    )
    place = submission.place_of(conn, {})
    kept = runs.folder_of_try(place.base / "i", "key")
    application = submission.Application(application=str(app), name="n")
    submission.prepare(kept, place, application, "key", None)
    started = submission.start_once(kept, place, application)
    assert driver.read(kept / runs.SUBMITTED) == {"submission_id": started}
    return started


def test_a_master_that_restarts_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it breaks the connection off, then nothing listens, then it is back."""
    monkeypatch.setattr(submission, "MASTER_AGAIN", 0.01)
    port, back = lasting_port(), Server(replies=[TAKEN])
    dying = socket.create_server(("127.0.0.1", port))

    def die() -> None:
        peer, _ = dying.accept()
        peer.close()
        dying.close()
        refused.wait(20)
        with serving(back.reply, port=port):
            over.wait(20)

    refused, over = threading.Event(), threading.Event()
    real = submission.RestServer.submit

    def submit(*args: object, **given: object) -> str:
        try:
            return real(*args, **given)  # type: ignore[arg-type]
        except SparkMasterAway as error:
            if "refused" in str(error):
                refused.set()
            raise

    monkeypatch.setattr(submission.RestServer, "submit", submit)
    host = threading.Thread(target=die)
    host.start()
    try:
        assert order(tmp_path, port) == "driver-7"
    finally:
        over.set()
        host.join()
    assert len(back.asked) == 1
    assert capsys.readouterr().err.count("The driver is ordered again, for 60 s.") == 1


def test_a_master_that_stays_away_is_told_of_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "MASTER_AGAIN", 0.01)
    monkeypatch.setattr(submission, "MASTER_RETURNS", 0.05)
    with pytest.raises(SparkMasterAway, match=r"spark\.master\.rest\.enabled=true, .*\?rest=http://HOST:6066"):
        order(tmp_path, lasting_port())


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((403, {"message": "no"}), "refused: status 403"),
        ((200, {"hello": "world"}), "is no REST server of a Spark master"),
        ((200, {"action": "CreateSubmissionResponse", "success": False, "message": "too big"}), "took no driver: too big"),
    ],
)
def test_who_answers_is_not_asked_again(tmp_path: Path, reply: tuple[int, dict[str, object]], said: str) -> None:
    server = Server(replies=[reply])
    with serving(server.reply) as port, pytest.raises(SparkUnavailable, match=said):
        order(tmp_path, port)
    assert len(server.asked) == 1
