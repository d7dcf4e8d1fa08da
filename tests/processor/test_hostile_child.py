"""A DAG file may do anything in the process that loads it: whatever that says, the file has a result, and so has the next one."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from evenflow.errors import ApiUnavailable, CodeArchiveError
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.processor import limits
from evenflow.processor.checking import CheckedFile, check_files
from evenflow.processor.delivery import _packed, deliver
from evenflow.processor.parsing import Parsed, ParseLimits, parse_file
from evenflow.wire.messages import LeasedFile, ParsedAnswer, ParsedFile
from tests.processor.bundle import a_dag

LINK = """
import gc, json, os, struct, sys
from evenflow.forking.frames import Link
link = next(o for o in gc.get_objects() if isinstance(o, Link))
def raw(head, body=b"", sizes=None):
    link._control.sendall(struct.pack(">II", *(sizes or (len(head), len(body)))) + head + body)
    os._exit(0)
def say(header, body=b"[]"):
    raw(json.dumps(header).encode(), body)
DEEP = b"[" * 60_000 + b"]" * 60_000
"""
PARSED = '{"tell": "parsed", "files": []}'
SAID = {
    "a body that is no JSON": f"say({PARSED}, b'?')",
    "a body that is a number": f"say({PARSED}, b'5')",
    "a body of numbers": f"say({PARSED}, b'[5]')",
    "a deep body": f"say({PARSED}, DEEP)",
    "a body that is no text": f"say({PARSED}, b'[\"\\xff\"]')",
    "a file with a NUL": "say({'tell': 'parsed', 'files': ['a\\0b']})",
    "a file elsewhere": "say({'tell': 'parsed', 'files': ['../../etc/passwd']})",
    "files that are none": "say({'tell': 'parsed', 'files': 7})",
    "a file that is a number": "say({'tell': 'parsed', 'files': [7]})",
    "a word that there is not": "say({'tell': 'shout'})",
    "no word at all": "say({})",
    "a failure without a reason": "say({'tell': 'failed'})",
    "a line beyond all files": "say({'tell': 'failed', 'trace': 'x', 'line': 10**30})",
    "a header that is a list": "raw(b'[]')",
    "a header that is no JSON": "raw(b'{')",
    "a deep header": "raw(b'{\"a\": ' + DEEP + b'}')",
    "a header of other bytes": "raw(b'\\xff\\xfe\\x00')",
    "a frame without end": "raw(b'{}', sizes=(2**32 - 1, 2**32 - 1))",
    "a frame that is cut off": "raw(b'{}', sizes=(2, 1000))",
    "nothing": "os._exit(0)",
    "a signal": "os.kill(os.getpid(), 9)",
    "a closed socket": "os.close(link.fileno()); os._exit(0)",
}


async def test_whatever_a_process_says_its_file_has_a_result(template: OwnedTemplate, tmp_path: Path) -> None:
    """R-SE2. One after the other in one template, as a parser of a processor has them."""
    (tmp_path / "good.py").write_text(a_dag("good"))
    for name, says in SAID.items():
        (tmp_path / "bad.py").write_text(f"# evenflow dag\n{LINK}\n{says}\n")
        async with asyncio.timeout(60):
            parsed = await parse_file(template, str(tmp_path), "bad.py", ParseLimits())
        assert parsed.error is not None, name
        assert (parsed.specs, parsed.files) == ([], []), name
    good = await parse_file(template, str(tmp_path), "good.py", ParseLimits())
    assert (good.error, len(good.specs)) == (None, 1)


async def test_one_whose_end_never_shows_is_given_up(
    template: OwnedTemplate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE2. Whatever is wrong below, a parser comes back."""
    monkeypatch.setattr(limits, "ABORT_GRACE", 0.01)
    monkeypatch.setattr(limits, "END_GRACE", 0.01)
    monkeypatch.setattr("evenflow.processor.parsing._Parsing.exited", lambda self, end: None)
    (tmp_path / "slow.py").write_text("# evenflow dag\nimport time\ntime.sleep(1000)\n")
    parsed = await parse_file(template, str(tmp_path), "slow.py", ParseLimits(timeout_s=0.1))
    assert parsed.error is not None
    assert "its end did not show" in parsed.error


async def test_what_a_file_prints_and_raises_is_masked(
    template: OwnedTemplate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SE4. The processor's host may have connections in its environment, and the database shows what failed to everybody."""
    monkeypatch.setenv("EVENFLOW_CONN_DB", "postgresql://me:s3cr3t-w0rd@db/x")
    monkeypatch.setenv("EVENFLOW_VAR_API_KEY", "k3y-0f-the-house")
    head = "# evenflow dag\nimport os, warnings\nwarnings.warn('s3cr3t-w0rd')\nprint('k3y-0f-the-house', flush=True)\n"
    (tmp_path / "raises.py").write_text(head + "raise ValueError('s3cr3t-w0rd')\n")
    (tmp_path / "ends.py").write_text(head + "os._exit(3)\n")
    raised = await parse_file(template, str(tmp_path), "raises.py", ParseLimits())
    ended = await parse_file(template, str(tmp_path), "ends.py", ParseLimits())
    for parsed in (raised, ended):
        told = repr(parsed)
        assert "***" in told
        assert "s3cr3t" not in told
        assert "k3y-0f" not in told
    assert "ValueError" in (raised.summary or "")


@pytest.mark.parametrize(
    "code", ["warnings.warn(f)", "raise ValueError('x' * (limits.ERROR_KEPT - 1000) + f)", "print(f); os._exit(3)"]
)
async def test_a_secret_where_a_text_is_cut_is_masked(
    template: OwnedTemplate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """R-SE4. Half of it would be no secret that is known."""
    monkeypatch.setenv("EVENFLOW_VAR_API_KEY", secret := "".join(f"{number:04}" for number in range(400)))
    head = "# evenflow dag\nimport os, warnings\nfrom evenflow.processor import limits\n"
    fill = f"f = 'x' * 1000 + {secret!r} + 'y' * (limits.OUTPUT_KEPT - 1000 if 'print' in {code!r} else limits.ERROR_KEPT - 1000)\n"
    (tmp_path / "cut.py").write_text(head + fill + code + "\n")
    told = repr(await parse_file(template, str(tmp_path), "cut.py", ParseLimits()))
    assert "00010002" not in told
    assert "03970398" not in told


def test_only_regular_files_of_some_size_travel(tmp_path: Path) -> None:
    """R-SE2. A pipe would hold a thread, a sparse file of a terabyte the memory."""
    (tmp_path / "dag.py").write_text("x = 1\n")
    assert _packed(tmp_path, ["dag.py"])[1]
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(CodeArchiveError, match=r"'pipe.py' is no regular file"):
        _packed(tmp_path, ["dag.py", "pipe.py"])
    with open(tmp_path / "huge.py", "wb") as huge:
        huge.truncate(2**40)
    with pytest.raises(CodeArchiveError, match=r"'huge.py' among them, are more than"):
        _packed(tmp_path, ["dag.py", "huge.py"])
    with pytest.raises(CodeArchiveError):
        _packed(tmp_path, ["a\0b"])


async def test_what_silences_an_api_is_sent_three_times_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2. Each server that it is sent to might fall silent. One that is away is another matter: that is waited for."""
    monkeypatch.setattr("evenflow.membership.backoff.FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr("evenflow.membership.backoff.LAST_PAUSE_S", 0.0)
    (tmp_path / "a.py").write_text("x = 1\n")
    sent: list[ParsedFile] = []

    class Api:
        away = 20

        async def file_parsed(self, message: ParsedFile) -> ParsedAnswer:
            if self.away:
                self.away -= 1
                raise ApiUnavailable("connection refused") from ConnectionRefusedError()
            sent.append(ParsedFile(**{name: getattr(message, name) for name in message.__struct_fields__}))
            if message.specs:
                raise ApiUnavailable("no answer") from TimeoutError()
            return ParsedAnswer()

        async def put_code(self, code_hash: str, archive: bytes) -> None: ...

    leased = LeasedFile(bundle="main", file="a.py", fingerprint="1")
    waits = 0

    def count() -> None:
        nonlocal waits
        waits += 1

    async with asyncio.timeout(30):
        await deliver(Api(), leased, Parsed(0.1, specs=["poison"], files=["a.py"]), tmp_path, None, waits=count)
    assert [bool(message.specs) for message in sent] == [True, True, True, False]
    assert sent[-1].error == "a.py cannot be delivered: the API took it 3 times and did not answer"
    assert waits == 22, "whoever watches the parser is told that it only waits"


async def test_a_file_that_ends_the_template_harms_only_itself(tmp_path: Path) -> None:
    """R-AF2: those that are loaded beside it and after it load."""
    files = [CheckedFile(tmp_path, f"good_{number}.py") for number in range(8)]
    for file in files:
        file.path.write_text(a_dag(file.path.stem))
    files[1].path.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()\n")
    checked = await check_files(files, ParseLimits(timeout_s=20))
    (error,) = checked.findings
    assert (error.path.name, error.severity) == ("good_1.py", "error")
    assert "the template process that this one was forked from ended: killed by SIGKILL" in error.message
    assert checked.dags == [f"good_{number}" for number in range(8) if number != 1]
