"""Archives of DAG code: the same for the same files, and harmless whatever they hold."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiRefused, CodeArchiveError
from evenflow.wire import code
from evenflow.wire.code import archive_hash, pack, read_archive, unpack
from tests.api.world import World
from tests.watchdog import within

FILES = {"dag.py": b"import lib\n", "lib/__init__.py": b"", "lib/ä.py": b"x = 1\n"}

_part = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="/\\"), min_size=1, max_size=20)
_odd = st.recursive(
    st.one_of(st.none(), st.integers(-(2**63), 2**64 - 1), st.text(max_size=9), st.binary(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=9), inner, max_size=4)),
)
_paths = st.lists(_part.filter(lambda part: part not in (".", "..")), min_size=1, max_size=3).map("/".join)


def archive_of(*entries: tuple[object, object]) -> bytes:
    """A map that :func:`pack` would not make."""
    return gzip.compress(
        bytes([0x80 + len(entries)]) + b"".join(msgspec.msgpack.encode(part) for entry in entries for part in entry)
    )


@given(st.dictionaries(_paths.filter(lambda p: len(p.encode()) <= 200), st.binary(max_size=200), max_size=5))
def test_what_is_packed_is_read(files: dict[str, bytes]) -> None:
    assert read_archive(pack(files)) == files


def test_packing_is_deterministic() -> None:
    assert pack(FILES) == pack(dict(reversed(FILES.items())))


def test_the_hash_is_of_paths_and_contents() -> None:
    def digest(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    lines = "".join(f"{path}\0{digest(FILES[path])}\n" for path in sorted(FILES))
    assert archive_hash(FILES) == digest(lines.encode())
    assert archive_hash(FILES) == archive_hash(read_archive(pack(FILES)))
    assert archive_hash({**FILES, "dag.py": b"import lib"}) != archive_hash(FILES)


def test_unpacking_makes_the_folder_whole_and_once(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / archive_hash(FILES)
    for _ in range(2):
        unpack(pack(FILES), folder, code_hash=archive_hash(FILES))
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES
    assert os.listdir(folder.parent) == [folder.name]


def test_unpacking_checks_the_hash(tmp_path: Path) -> None:
    with pytest.raises(CodeArchiveError, match="was damaged or changed on its way"):
        unpack(pack(FILES), tmp_path / "x", code_hash=archive_hash({}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../up.py", "a/../../up.py", "a//b.py", "./a.py", "a\\b.py", "a\nb.py", "", "x" * 256]
)
def test_paths_that_lead_elsewhere(path: str) -> None:
    with pytest.raises(CodeArchiveError, match="cannot be a path in an archive"):
        pack({path: b""})
    with pytest.raises(CodeArchiveError):
        read_archive(archive_of((path, b"")))


@pytest.mark.parametrize("content", [None, 7, "text", {"size": 2**40}, [b"x"], {"a": {"b": {}}}])
def test_what_is_no_content(content: object) -> None:
    """R-SE2. There is no kind of file but a regular one, and no size but that of what is there."""
    with pytest.raises(CodeArchiveError, match="no map of at most 10,000 files"):
        read_archive(archive_of(("a", content)))


def test_a_number_of_files_is_refused_before_they_are_read() -> None:
    """R-SE2. A map of millions of names would take gigabytes; here there is not one of those that it promises."""
    with pytest.raises(CodeArchiveError, match="no map of at most 10,000 files: Expected `object` of length <= 10000"):
        read_archive(gzip.compress(b"\xdf" + (50_000_000).to_bytes(4, "big")))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300), st.binary(max_size=300).map(gzip.compress), _odd.map(msgspec.msgpack.encode).map(gzip.compress)
    )
)
@example(gzip.compress(b"\x81\xa1\x80\xc4\x00"))  # a name that is not UTF-8
def test_any_bytes_are_an_archive_or_refused(data: bytes) -> None:
    """R-SE2"""
    with within(20), contextlib.suppress(CodeArchiveError):
        files = read_archive(data)
        assert read_archive(pack(files)) == files


def test_archives_that_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    good = pack(FILES)
    for bad, said in (
        (b"", "cut off"),
        (b"plain", "not gzip"),
        (good[:-5], "cut off"),
        (good + b"tail", "tail"),
        (gzip.compress(b"x" * 2000), "no map"),
        (gzip.compress(b""), "no map"),
    ):
        with pytest.raises(CodeArchiveError, match=said):
            read_archive(bad)
    monkeypatch.setattr(code, "MAX_UNPACKED_BYTES", 20_000)
    with pytest.raises(CodeArchiveError, match="unpacks to more than 20,000 bytes"):
        read_archive(gzip.compress(b"\0" * 10_000_000))
    monkeypatch.setattr(code, "MAX_FILES", 2)
    with pytest.raises(CodeArchiveError, match="This DAG's code has 3 files"):
        pack(FILES)


def test_code_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_ARCHIVE_BYTES", 50)
    with pytest.raises(CodeArchiveError, match="Keep data out of its modules"):
        pack(FILES)


@pytest.mark.usefixtures("no_dag")
async def test_code_goes_to_the_api_and_comes_back(processor: ExecutionClient, client: ExecutionClient, world: World) -> None:
    archive, name = pack(FILES), archive_hash(FILES)
    await processor.put_code(name, archive)
    await processor.put_code(name, archive)
    assert await client.get_code(name) == archive
    assert world.one("select count(*) from code") == 1


@pytest.mark.usefixtures("no_dag")
async def test_the_api_takes_no_code_under_a_wrong_name(processor: ExecutionClient, client: ExecutionClient, world: World) -> None:
    for body in (pack({"other.py": b""}), b"nonsense", b""):
        with pytest.raises(ApiRefused) as refused:
            await processor.put_code(archive_hash(FILES), body)
        assert refused.value.status == 422
    with pytest.raises(ApiRefused, match="There is no code") as refused:
        await client.get_code(archive_hash(FILES))
    assert refused.value.status == 404
    assert world.one("select count(*) from code") == 0


async def test_the_api_takes_no_code_above_the_limit(processor: ExecutionClient) -> None:
    with pytest.raises(ApiRefused, match=f"above the limit of {code.MAX_ARCHIVE_BYTES:,} bytes") as refused:
        await processor.put_code("0" * 64, b"x" * (code.MAX_ARCHIVE_BYTES + 1))
    assert refused.value.status == 413
