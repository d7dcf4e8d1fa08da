"""TLS of every server and client, with certificates of an authority of the test; plain HTTP stays on this host (R-SE4)."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme
from aiohttp import web

from evenflow.client.execution import ExecutionClient
from evenflow.client.http import HttpClient
from evenflow.client.rest import RestClient
from evenflow.errors import ApiNotTrusted, ApiUnavailable, SettingsError
from evenflow.telemetry.listener import HttpAnswer, Listener
from evenflow.wire.tls import Tls
from tests.apis import make_api
from tests.running import evenflow, evenflow_json, make_home, remove_home, running_evenflow
from tests.tokens import operator_token

ONE_DAG = """
from evenflow import dag, task

@dag()
def over_tls():
    @task
    def greet():
        print("hello over TLS")
        return "hello"

    @task
    def answer(said):
        print(said)

    answer(greet())

over_tls()
"""


@dataclass
class Authority:
    """Writes what it issues below ``folder``."""

    folder: Path
    ca: trustme.CA

    def tls(self, *names: str) -> Tls:
        """Of a host with these names, that trusts this authority."""
        issued = self.ca.issue_cert(*names)
        files = {name: str(self.folder / f"{names[0]}.{name}") for name in ("cert", "key")}
        issued.private_key_pem.write_to_path(files["key"])
        for number, part in enumerate(issued.cert_chain_pems):
            part.write_to_path(files["cert"], append=number > 0)
        return Tls(**files, ca=self.file)

    @property
    def file(self) -> str:
        path = self.folder / "ca.pem"
        if not path.exists():
            self.ca.cert_pem.write_to_path(str(path))
        return str(path)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, trustme.CA())


async def test_clients_reach_an_api_that_speaks_tls(
    database_url: str, db: psycopg.Connection[Any], tmp_path: Path, authority: Authority
) -> None:
    """R-SE4: with the authority that they are told, by the name that the certificate has; and none in plain HTTP."""
    tls = authority.tls("localhost")
    api = make_api(database_url, tmp_path, host="0.0.0.0", tls=tls)
    await api.start()
    try:
        url, token = f"https://localhost:{api.port}", operator_token(db)
        async with RestClient(url, token, tls=Tls(ca=authority.file)) as client:
            assert await client.is_ready()
        for wrong in (Tls(), Tls(ca=Authority(_folder(tmp_path / "other"), trustme.CA()).file)):
            with pytest.raises(ApiNotTrusted, match=r"certificate verify failed.*EVENFLOW_TLS_CA names the authority's file"):
                await get(url, wrong)
        with pytest.raises(ApiUnavailable, match="try https:// in EVENFLOW_API_URL"):
            await get(f"http://127.0.0.1:{api.port}", Tls())
        with pytest.raises(ApiUnavailable, match="certificate is not valid for"):
            await get(f"https://127.0.0.1:{api.port}", Tls(ca=authority.file))
    finally:
        await api.stop()


async def test_an_api_may_ask_its_clients_for_certificates(database_url: str, tmp_path: Path, authority: Authority) -> None:
    """R-SE4"""
    clients = Authority(_folder(tmp_path / "clients"), trustme.CA())
    api = make_api(database_url, tmp_path, tls=replace(authority.tls("localhost"), client_ca=clients.file))
    await api.start()
    try:
        url = f"https://localhost:{api.port}"
        with_one = replace(clients.tls("worker.internal"), ca=authority.file)
        assert await get(url, with_one) == 200
        for other in (Tls(ca=authority.file), replace(authority.tls("stranger.internal"), ca=authority.file)):
            with pytest.raises(ApiUnavailable, match="EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY name this one's"):
                await get(url, other)
    finally:
        await api.stop()


async def test_an_api_in_plain_http_is_told_from_one_that_is_not_there(database_url: str, tmp_path: Path) -> None:
    """R-SE4: who expects TLS there is told."""
    api = make_api(database_url, tmp_path)
    await api.start()
    try:
        with pytest.raises(ApiNotTrusted, match="It speaks plain HTTP: write http://"):
            await get(f"https://127.0.0.1:{api.port}", Tls())
    finally:
        await api.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "control.internal"])
def test_no_server_speaks_plain_http_to_other_hosts_unasked(host: str) -> None:
    """R-SE4"""
    with pytest.raises(SettingsError, match=r"would speak plain HTTP on .*, to other hosts, too\. Set EVENFLOW_TLS_CERT"):
        Tls().check_bind("The API", host)
    assert Tls(plaintext=True).check_bind("The API", host), "asked for by name, it is told"
    assert not Tls(cert="cert.pem").check_bind("The API", host)


async def test_an_api_in_plain_http_does_not_start_for_other_hosts(database_url: str, tmp_path: Path) -> None:
    """R-SE4: nothing listens."""
    api = make_api(database_url, tmp_path, host="0.0.0.0")
    with pytest.raises(SettingsError, match="plain HTTP"):
        await api.start()
    await api.stop()


@pytest.mark.parametrize("client", [HttpClient, RestClient, ExecutionClient])
def test_no_client_sends_a_token_in_plain_http_to_other_hosts_unasked(client: type) -> None:
    """R-SE4: of several addresses none may be such."""
    with pytest.raises(SettingsError, match=r"No token is sent to http://control\.internal:8974, which is plain HTTP"):
        client("https://a.internal,http://control.internal:8974", "token")
    with pytest.raises(SettingsError, match="names a host"):
        client("control.internal:8974", "token")
    for url in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://control.internal"):
        client(url, "token")
    client("http://control.internal", "token", tls=Tls(plaintext=True))


def test_health_and_metrics_speak_tls(authority: Authority) -> None:
    """R-SE4: who does not shake hands holds nobody up."""
    listener = Listener(
        "127.0.0.1", 0, {"/": lambda: HttpAnswer(200, "text/plain", b"well")}, authority.tls("localhost").for_server()
    )
    listener.start()
    try:
        with socket.create_connection(("127.0.0.1", listener.port)):
            context = ssl.create_default_context(cafile=authority.file)
            with urllib.request.urlopen(f"https://localhost:{listener.port}/", context=context, timeout=10) as answer:
                assert answer.read() == b"well"
            with pytest.raises((urllib.error.URLError, OSError)):
                urllib.request.urlopen(f"http://localhost:{listener.port}/", timeout=10)
    finally:
        listener.stop()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("no certificate", r"EVENFLOW_TLS_CERT \(/nowhere\): No such file or directory"),
        ("no key", r"EVENFLOW_TLS_KEY \(/nowhere\): No such file or directory"),
        ("no PEM", r"EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY \(\S+/text, "),
        ("another's key", r"EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY .*MISMATCH"),
        ("no authority of clients", r"EVENFLOW_TLS_CLIENT_CA \(/nowhere\): No such file or directory"),
        ("no authority", r"EVENFLOW_TLS_CA \(/nowhere\): No such file or directory"),
    ],
)
def test_files_that_are_no_certificate_or_key(wrong: str, told: str, tmp_path: Path, authority: Authority) -> None:
    """R-UX1: which of the four it is, and what is wrong with it."""
    good, other = authority.tls("localhost"), authority.tls("other.internal")
    (tmp_path / "text").write_text("text")
    tls = {
        "no certificate": Tls(cert="/nowhere", key=good.key),
        "no key": Tls(cert=good.cert, key="/nowhere"),
        "no PEM": Tls(cert=str(tmp_path / "text"), key=good.key),
        "another's key": Tls(cert=good.cert, key=other.key),
        "no authority of clients": replace(good, client_ca="/nowhere"),
        "no authority": Tls(ca="/nowhere"),
    }[wrong]
    use = tls.for_client if wrong == "no authority" else tls.for_server
    with pytest.raises(SettingsError, match=f"A certificate or key cannot be used: {told}"):
        use()


async def test_a_redirection_is_not_followed() -> None:
    """R-SE4: what is sent holds tokens, also in bodies."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = HttpClient(f"http://127.0.0.1:{runner.addresses[0][1]}", "token")
    assert (await client.request("POST", "/reports", body=b"with tokens")).status == 307
    assert asked == ["/reports"]
    await client.close()
    await runner.cleanup()


@pytest.mark.system
def test_everything_runs_over_tls(authority: Authority) -> None:
    """R-SE4: `evenflow up` with a certificate: its services, its command line and `doctor` meet over TLS alone."""
    home = make_home()
    try:
        tls = authority.tls("localhost")
        (home / "dags").mkdir()
        (home / "dags" / "over_tls.py").write_text(ONE_DAG)
        files = {"tls_cert": tls.cert, "tls_key": tls.key, "tls_ca": tls.ca}
        (home / "evenflow.toml").write_text("".join(f"{name} = {json.dumps(path)}\n" for name, path in files.items()))
        with running_evenflow(home) as up:
            assert up.api_url.startswith("https://localhost:")
            done = up.evenflow("run", "over_tls")
            assert done.returncode == 0, (done.stdout, done.stderr, up.log)
            assert "hello over TLS" in up.evenflow("tasks", "logs", "over_tls", "greet").stdout
            findings = {finding["what"]: finding for finding in evenflow_json(home, "doctor")["findings"]}
            assert (findings["Transport"]["verdict"], findings["API"]["verdict"]) == ("ok", "ok"), findings
            assert up.end() == 0
    finally:
        remove_home(home)


@pytest.mark.system
def test_up_says_at_once_that_nobody_would_trust_its_api(authority: Authority) -> None:
    """R-UX1: instead of services that wait for it."""
    home = make_home()
    try:
        (home / "dags").mkdir()
        tls = authority.tls("localhost")
        given = {"EVENFLOW_TLS_CERT": tls.cert, "EVENFLOW_TLS_KEY": tls.key}
        done = evenflow(home, "up", "--dags", str(home / "dags"), **given)
        assert done.returncode == 3, (done.stdout, done.stderr)
        assert "certificate verify failed" in done.stderr, (done.stdout, done.stderr)
        assert "EVENFLOW_TLS_CA names the authority's file" in done.stderr
        assert "is not ready after" not in done.stderr
    finally:
        remove_home(home)


async def get(url: str, tls: Tls) -> int:
    """The status of an answer."""
    client = HttpClient(url, "token", patience_s=0.0, tls=tls)
    try:
        return (await client.request("GET", "/health/live")).status
    finally:
        await client.close()


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
