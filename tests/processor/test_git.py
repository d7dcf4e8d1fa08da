"""Bundles from git, with real repositories: what is fetched, what is switched, and what a remote that is away does not harm."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evenflow.core.bundle import BundleSource
from evenflow.processor import limits
from evenflow.processor.git import GitRepository
from tests.observed import observations
from tests.processor.bundle import Bundle, a_dag
from tests.processor.conftest import StartProcessor
from tests.waiting import until


class Remote:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        """The new commit; ``a__b`` stands for the path ``a/b.py``."""
        for name, text in files.items():
            path = self.path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remote")


def states(bundle: Bundle) -> dict[str, Any]:
    detail = bundle.one("select detail from service where kind = 'processor' order by service_id desc limit 1")
    return {state["name"]: state for state in detail["bundles"]}


async def test_a_commit_becomes_dags_and_the_next_one_too(bundle: Bundle, remote: Remote, start_processor: StartProcessor) -> None:
    first = remote.commit(dags__a=a_dag("a", "one", head="from lib import x"), dags__lib="x = 1\n", other=a_dag("other"))
    local, git = (
        BundleSource(name="main", folder=str(bundle.folder)),
        BundleSource(name="etl", git=str(remote.path), ref="main", subdir="dags", refresh=0.1),
    )
    bundle.write("b.py", a_dag("b"))
    await start_processor(sources=[local, git])
    await until(lambda: bundle.tasks("a") and bundle.tasks("b"), "the DAGs of both bundles")
    query = "select v.bundle, v.file, v.revision from dag_version v where dag_id = %s order by version_number desc limit 1"
    row = "select v.bundle || ' ' || v.file || ' ' || coalesce(v.revision, '') from (" + query + ") as v"
    assert bundle.one(row, "a") == f"etl a.py {first}"
    assert bundle.one(row, "b") == "main b.py "
    second = remote.commit(dags__a=a_dag("a", "one", "two"))
    await until(lambda: bundle.tasks("a") == ["one", "two"], "the second commit")
    assert bundle.one(row, "a") == f"etl a.py {second}"
    assert bundle.one("select count(*) from dag where dag_id = 'other'") == 0
    await until(lambda: states(bundle)["etl"]["revision"] == second, "the state")
    assert states(bundle)["etl"] | {"refreshed_at": ""} == {
        "name": "etl",
        "kind": "git",
        "location": f"{remote.path} (dags)",
        "ref": "main",
        "revision": second,
        "files": 1,
        "refreshed_at": "",
        "error": None,
        "warnings": [],
    }


@pytest.mark.system
async def test_a_remote_that_goes_away_harms_nothing(bundle: Bundle, remote: Remote, start_processor: StartProcessor) -> None:
    commit = remote.commit(a=a_dag("a"))
    await start_processor(sources=[BundleSource(name="etl", git=str(remote.path), refresh=0.1)])
    await bundle.parsed("a.py")
    remote.path.rename(remote.path.with_name("moved"))
    await until(lambda: "git fetch failed" in str(states(bundle)["etl"]["error"]), "the error in the state")
    assert states(bundle)["etl"]["revision"] == commit
    assert bundle.one("select is_active from dag where dag_id = 'a'") is True
    remote.path.with_name("moved").rename(remote.path)
    await until(lambda: states(bundle)["etl"]["error"] is None, "the end of the error")


async def test_a_remote_that_was_never_there_keeps_no_other_bundle_waiting(bundle: Bundle, start_processor: StartProcessor) -> None:
    bundle.write("b.py", a_dag("b"))
    local = BundleSource(name="main", folder=str(bundle.folder))
    await start_processor(sources=[BundleSource(name="etl", git="/nowhere.git", refresh=0.1), local])
    await bundle.parsed("b.py")
    await until(lambda: "/nowhere.git" in str(states(bundle)["etl"]["error"]), "the error in the state")


async def test_two_bundles_with_one_dag(bundle: Bundle, remote: Remote, start_processor: StartProcessor) -> None:
    bundle.write("mine.py", a_dag("a"))
    local = BundleSource(name="main", folder=str(bundle.folder))
    await start_processor(sources=[local])
    await bundle.parsed("mine.py")
    remote.commit(theirs=a_dag("a"))
    await start_processor("p2", sources=[BundleSource(name="etl", git=str(remote.path), refresh=0.1)])
    known = await bundle.parsed("theirs.py")
    assert "The DAG 'a' of theirs.py (bundle 'etl') is already defined in mine.py (bundle 'main')" in str(known.error)


async def test_without_git(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path)), tmp_path / "home")
    await repository.refresh()
    assert "The program git is not installed" in str(repository.state()["error"])


async def test_branches_tags_and_commits(remote: Remote, tmp_path: Path) -> None:
    first = remote.commit(a="1")
    remote.git("tag", "v1")
    second = remote.commit(a="2")
    remote.git("config", "uploadpack.allowAnySHA1InWant", "true")
    for ref, commit in (("v1", first), ("main", second), (first, first), ("HEAD", second)):
        repository = GitRepository(BundleSource(name="etl", git=str(remote.path), ref=ref), tmp_path / "home")
        await repository.refresh()
        assert repository.state()["error"] is None
        assert repository.revision(repository.folder.resolve()) == commit
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path), ref="nonsense"), tmp_path / "home")
    await repository.refresh()
    assert "nonsense" in str(repository.state()["error"])
    assert repository.revision(repository.folder.resolve()) == second, "what was there stays"
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path), subdir="no"), tmp_path / "home")
    await repository.refresh()
    assert "has no folder 'no'" in str(repository.state()["error"])


async def test_old_trees_are_deleted_later(remote: Remote, tmp_path: Path) -> None:
    commits = [remote.commit(a=str(number)) for number in range(2)]
    home = tmp_path / "home"
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path)), home)
    for number in range(2, 4):
        commits.append(remote.commit(a=str(number)))
        await repository.refresh()
    assert sorted(os.listdir(home / "trees")) == sorted(commits[2:]), "the one before may still be read"
    long_ago = time.time() - limits.OLD_TREE - 1
    for tree in (home / "trees").iterdir():
        os.utime(tree, (long_ago, long_ago))
    await repository.refresh()
    assert os.listdir(home / "trees") == commits[3:]


async def test_a_password_is_shown_to_the_remote_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str | None] = []

    class Wants(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers["Authorization"])
            self.send_response(404 if shown[-1] else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Wants) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("EVENFLOW_CONN_REPO", "https://me:s3cret%2F@host")
        url = f"http://127.0.0.1:{server.server_port}/x.git"
        repository = GitRepository(BundleSource(name="etl", git=url, connection="repo"), tmp_path / "home")
        await repository.refresh()
        server.shutdown()
    assert f"Basic {base64.b64encode(b'me:s3cret/').decode()}" in shown
    assert "git fetch failed" in str(repository.state()["error"])
    assert "s3cret" not in str(repository.state())
    assert not any(b"s3cret" in path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())


async def test_a_connection_that_is_missing(tmp_path: Path) -> None:
    repository = GitRepository(BundleSource(name="etl", git="https://127.0.0.1:1/x.git", connection="repo"), tmp_path / "home")
    await repository.refresh()
    assert "Connection 'repo' is not defined" in str(repository.state()["error"])


async def test_a_password_is_not_shown_where_the_remote_redirects_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str | None] = []
    places: list[str] = []

    class Thief(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.append(self.headers["Authorization"])
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

    class Redirects(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", places[0] + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Thief) as thief, ThreadingHTTPServer(("127.0.0.1", 0), Redirects) as remote:
        for server in (thief, remote):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        places.append(f"http://127.0.0.1:{thief.server_port}")
        monkeypatch.setenv("EVENFLOW_CONN_REPO", "https://me:s3cret@host")
        source = BundleSource(name="etl", git=f"http://127.0.0.1:{remote.server_port}/x.git", connection="repo")
        repository = GitRepository(source, tmp_path / "home")
        await repository.refresh()
        for server in (thief, remote):
            server.shutdown()
    assert repository.state()["error"] is not None
    assert set(shown) == {None}


async def test_no_url_names_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where git's own settings would let it."""
    (tmp_path / "gitconfig").write_text("[protocol]\n\tallow = always\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "gitconfig").rename(tmp_path / ".gitconfig")
    here = tmp_path / "here"
    repository = GitRepository(BundleSource(name="etl", git=f"ext::sh -c touch% {here}"), tmp_path / "home")
    await repository.refresh()
    assert "transport 'ext' not allowed" in str(repository.state()["error"])
    assert not here.exists()


@pytest.mark.parametrize("asked_for", [False, True])
async def test_a_persons_settings_run_nothing_for_a_repository(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_for: bool
) -> None:
    """R-SE2: filters such as LFS' are of the user's own settings, and a repository says to which files and hosts they apply."""
    (remote.path / ".gitattributes").write_text("*.py filter=lfs\n")
    remote.commit(a="x = 1\n")
    here = tmp_path / "here"
    settings = tmp_path / ".gitconfig"
    settings.write_text(f'[filter "lfs"]\n\tsmudge = "env > {here}; cat"\n\trequired = true\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    if asked_for:
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path)), tmp_path / "home")
    await repository.refresh()
    assert repository.state()["error"] is None
    assert (repository.folder / "a.py").read_text() == "x = 1\n"
    assert here.exists() == asked_for
    if asked_for:
        assert "GIT_LFS_SKIP_SMUDGE=1\n" in here.read_text(), "what a .lfsconfig names is not asked for"


@pytest.mark.parametrize(
    ("url", "warns"),
    [
        ("http://git.example/x.git", True),
        ("git://git.example/x.git", True),
        ("https://git.example/x.git", False),
        ("ssh://git@git.example/x.git", False),
        ("git@git.example:x.git", False),
        ("http://127.0.0.1:3000/x.git", False),
        ("/srv/x.git", False),
    ],
)
def test_a_way_on_which_dags_can_be_changed_is_told(tmp_path: Path, url: str, warns: bool) -> None:
    """R-SE4"""
    with observations() as logs:
        GitRepository(BundleSource(name="etl", git=url), tmp_path / "home").check()
    assert [line["level"] for line in logs] == ["WARNING"] * warns


async def test_a_folder_that_is_a_link_to_elsewhere(remote: Remote, tmp_path: Path) -> None:
    """Who may push does not choose what of this host is read."""
    private = tmp_path / "private"
    private.mkdir()
    (remote.path / "dags").symlink_to(private)
    remote.commit(other="1")
    repository = GitRepository(BundleSource(name="etl", git=str(remote.path), subdir="dags"), tmp_path / "home")
    await repository.refresh()
    assert "is a link to what is not in the repository" in str(repository.state()["error"])
    assert not repository.folder.exists()
