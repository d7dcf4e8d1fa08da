"""How Evenflow asks a cluster: patiently, at its pace, and without believing that it has seen everything."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evenflow.errors import ClusterRefused, ClusterUnavailable, SettingsError
from evenflow.kubernetes import limits
from evenflow.kubernetes.address import find_cluster
from evenflow.kubernetes.client import KubernetesClient, Object
from evenflow.kubernetes.mirror import Mirror
from evenflow.kubernetes.pacing import RequestPace
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.server import serve
from tests.kubernetes.store import POD
from tests.kubernetes.test_cluster import pod
from tests.waiting import until

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[KubernetesClient]:
    found = KubernetesClient(await find_cluster(cluster.uri, {}))
    yield found
    await found.close()


async def test_a_busy_cluster_is_asked_again_when_it_says(cluster: Cluster, client: KubernetesClient) -> None:
    """R-EX2: 429 with Retry-After, 5xx and a connection that breaks off before or after the deed cost time and nothing else."""
    cluster.fail("POST", "/pods$", status=429, retry_after_s=1)
    cluster.fail("POST", "/pods$", status=503)
    cluster.fail("POST", "/pods$", cut="before")
    began = asyncio.get_running_loop().time()
    made = await client.create(PODS, pod("a"))
    assert made["metadata"]["name"] == "a"
    assert asyncio.get_running_loop().time() - began >= 1.0
    cluster.fail("POST", "/pods$", cut="after")
    with pytest.raises(ClusterRefused) as refused:
        await client.create(PODS, pod("b"))
    assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")
    assert await client.get(f"{PODS}/b")
    assert await client.get(f"{PODS}/c") is None


async def test_a_cluster_that_is_away_is_told_in_a_sentence(cluster: Cluster) -> None:
    cluster.stop_api()
    client = KubernetesClient(await find_cluster(cluster.uri, {}), patience_s=0.3)
    with pytest.raises(ClusterUnavailable, match=re.escape(f"http://127.0.0.1:{cluster.port} cannot be reached")):
        await client.get(PODS)
    await client.close()
    cluster.start_api()


async def test_what_is_no_api_of_a_cluster_is_told_in_a_sentence() -> None:
    """A proxy that wants a login, or a page of its own, stands where the API is thought to be."""

    async def login(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "https://login.example/"}, text="<html>moved</html>")

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>welcome</html>\n")

    for handler, words in ((login, "status 302"), (page, "status 200")):
        runner, port = await serve(handler, 0)
        client = KubernetesClient(await find_cluster(f"kubernetes://127.0.0.1:{port}/?tls=off", {}), patience_s=0.3)
        try:
            for request in (client.get(PODS), client.list_all(PODS), anext(client.watch(PODS, "1"))):
                with pytest.raises(ClusterRefused, match=f"answered with no object of Kubernetes .{words}"):
                    await request
        finally:
            await client.close()
            await runner.cleanup()


async def test_a_token_that_cannot_be_read_is_told_in_a_sentence(cluster: Cluster, tmp_path: Path) -> None:
    """As while its file is put in place anew."""
    where = f"kubernetes://127.0.0.1:{cluster.port}/?tls=off&token_file={tmp_path / 'token'}"
    client = KubernetesClient(await find_cluster(where, {}), patience_s=0.1)
    for request in (client.get(PODS), anext(client.watch(PODS, "1"))):
        with pytest.raises(ClusterUnavailable, match="No such file"):
            await request
    await client.close()


async def test_only_the_pod_that_is_meant_is_deleted(cluster: Cluster, client: KubernetesClient) -> None:
    made = await client.create(PODS, pod("a"))
    assert not await client.delete(f"{PODS}/a", uid="another")
    assert await client.delete(f"{PODS}/a", uid=made["metadata"]["uid"], grace_s=0)
    assert not await client.delete(f"{PODS}/a")


async def test_what_there_is_is_known_through_gaps(
    cluster: Cluster, client: KubernetesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: watches that are cut, a history that is forgotten, pages of lists, a cluster that is away: at the end all is known."""
    monkeypatch.setattr(limits, "LIST_PAGE", 2)
    news: list[tuple[str, bool, bool]] = []
    failures: list[Exception] = []

    def changed(name: str, before: Object | None, after: Object | None) -> None:
        news.append((name, before is not None, after is not None))

    for name in "abcde":
        await client.create(PODS, pod(name))
    mirror = Mirror(client, PODS, "app=x", changed, failures.append)
    running = asyncio.create_task(mirror.run())
    await until(lambda: mirror.objects.keys() == set("abcde"))
    cluster.cut_watches()
    await client.create(PODS, pod("f"))
    await until(lambda: "f" in mirror.objects)
    cluster.stop_api()
    cluster.do(lambda: cluster.store.delete(POD, "default", "a", grace_s=0))
    cluster.forget_history()
    cluster.start_api()
    await until(lambda: "a" not in mirror.objects and len(mirror.objects) == 5)
    assert ("a", True, False) in news
    running.cancel()


async def test_requests_have_a_pace(cluster: Cluster) -> None:
    """A burst, then so many a second."""
    client = KubernetesClient(await find_cluster(cluster.uri, {}), pace=RequestPace(per_s=20, burst=4, in_flight=2))
    clock = asyncio.get_running_loop().time
    await client.get(PODS)
    began = clock()
    await asyncio.gather(*(client.get(PODS) for _ in range(10)))
    assert clock() - began >= (10 - 4) / 20
    await client.close()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", "not inside of a Kubernetes cluster"),
        ("https://cluster", "does not say where a cluster is"),
        ("kubernetes://example.org/?tls=off&token=secret", "plain HTTP to this host alone"),
        ("kubernetes://127.0.0.1:1/?nmespace=a", "no 'nmespace'"),
        ("kubernetes://127.0.0.1:1/?ca_file=/nowhere", "/nowhere, cannot be read"),
    ],
)
async def test_an_address_that_is_wrong_says_what_to_type(where: str, words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)) as error:
        await find_cluster(where, {})
    assert "secret" not in str(error.value)


async def test_a_kubeconfig_is_read_as_kubectl_does(tmp_path: Any) -> None:
    file = tmp_path / "config"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:8001'}}]\n"
        "users: [{name: u, user: {token: abc}}]\n"
        "contexts: [{name: one, context: {cluster: c, user: u, namespace: team}}]\n"
    )
    found = await find_cluster(f"kubeconfig:{file}", {})
    assert (found.url, found.namespace, found.tls) == ("http://127.0.0.1:8001", "team", False)
    assert await found.credentials.headers() == {"Authorization": "Bearer abc"}
    with pytest.raises(SettingsError, match="has no context 'two'; it has: one"):
        await find_cluster(f"kubeconfig:{file}#two", {})
