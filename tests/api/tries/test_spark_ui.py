"""The Spark UI of a running try through the API: read only, and of nothing but what the try has named (R-SP3)."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from dataclasses import asdict

import aiohttp
import pytest
from aiohttp import web

from evenflow.api.refusals import Refused
from evenflow.api.rest import spark_ui_pages
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import ApiRefused
from evenflow.spark.ui import SparkUi
from evenflow.wire import questions as q
from tests.api.world import World
from tests.tokens import operator_token as new_operator_token

APP = "local-17"
BASE = "/api/v1/dags/sales/runs/r1/tasks/extract/spark-ui/-1"


class Driver:
    """What a driver of Spark answers, and who asked for what."""

    def __init__(self) -> None:
        self.applications = [{"id": APP}]
        self.asked: list[web.Request] = []
        self.elsewhere = "http://127.0.0.1:9/jobs/"
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        base = request.headers.get("X-Forwarded-Context", "")
        match request.path:
            case "/api/v1/applications":
                return web.json_response(self.applications)
            case "/":
                return web.Response(status=302, headers={"Location": f"{self.url}{base}/jobs/?a=1"})
            case "/environment/":
                return web.Response(status=302, headers={"Location": self.elsewhere})
            case "/jobs/":
                text = f'<a href="{base}/stages/">S</a><a href="{self.url}/SQL/">Q</a><a href="/proxy/x/executors/">E</a>'
                return web.Response(text=text, content_type="text/html", headers={"Set-Cookie": "a=b"})
            case "/SQL/":
                return web.Response(status=302, headers={"Location": "http://["})
            case "/executors/":
                return web.Response(status=401)
            case "/static/webui.js":
                return web.Response(text="alert()", content_type="application/javascript")
            case _:
                return web.Response(body=b"x" * 100, content_type="text/plain")


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    driver = Driver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", driver.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    driver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield driver
    await runner.cleanup()


async def told(client: ExecutionClient, world: World, url: str, *, is_shared: bool = False) -> None:
    """A run with a try that says that its page is there."""
    world.dispatch(world.run(world.add_dag()), 1)
    ui = SparkUi(application_id=APP, url=url, is_shared=is_shared)
    await client.ask(world.try_token(1), "record", q.KeepRecord(kind="spark_ui", value=asdict(ui)))


async def test_a_page_is_read_through_the_api_as_long_as_its_try_runs(
    rest: RestClient, client: ExecutionClient, world: World, driver: Driver, api_url: str, operator_token: str
) -> None:
    with pytest.raises(ApiRefused, match="has told of a Spark UI"):
        await rest.find_spark_ui("sales", "r1", "extract")
    await told(client, world, driver.url)
    found = await rest.find_spark_ui("sales", "r1", "extract")
    assert (found.path, found.application_id, found.try_number) == (f"{BASE}/jobs/", APP, 1)
    shows = {"Authorization": f"Bearer {operator_token}"}
    async with aiohttp.ClientSession() as browser:
        async with browser.get(api_url + found.path) as answer:
            assert answer.status == 401
        async with browser.get(api_url + found.path, headers=shows) as answer:
            assert (answer.status, answer.headers.getall("Content-Security-Policy")) == (200, [*spark_ui_pages.RULES.values()])
            assert "script-src" not in answer.headers["Content-Security-Policy"], "none run: default-src is 'none'"
            assert "Set-Cookie" not in answer.headers
            page = await answer.text()
        assert f'<a href="{BASE}/stages/">' in page
        assert f'<a href="{BASE}/SQL/">' in page
        assert not {"Authorization", "Cookie"} & driver.asked[-1].headers.keys(), "what a person shows is for the API alone"
        async with browser.post(api_url + found.path, headers=shows) as answer:
            assert answer.status == 405
        world.conn.execute("delete from dispatch where epoch = 1")
        async with browser.get(api_url + found.path, headers=shows) as answer:
            assert (answer.status, (await answer.json())["type"]) == (409, "/api/v1/problems/ended")
    with pytest.raises(ApiRefused, match=r"has ended, and its Spark UI with it\..*: evenflow spark explain sales/r1 extract"):
        await rest.find_spark_ui("sales", "r1", "extract")


@pytest.mark.parametrize("path", ["environment/", "environment", "api/v1/applications/local-17/environment"])
async def test_what_tells_settings_is_for_operators(
    client: ExecutionClient, world: World, driver: Driver, api_url: str, path: str
) -> None:
    """R-SE4: passwords stand among the settings of an application, and Spark masks them by their names alone."""
    await told(client, world, driver.url)
    async with aiohttp.ClientSession() as browser:
        for role, status in ((Role.VIEWER, 403), (Role.AUTHOR, 403), (Role.OPERATOR, 502 if path == "environment/" else 200)):
            shows = {"Authorization": f"Bearer {new_operator_token(world.conn, role=role)}"}
            asked = len(driver.asked)
            async with browser.get(f"{api_url}{BASE}/{path}", headers=shows) as answer:
                assert answer.status == status, (role, await answer.text())
            assert (len(driver.asked) > asked) is (status != 403)


@pytest.mark.parametrize(
    "path",
    [
        "executors/threadDump/",
        "executors/heapHistogram/",
        "json/",
        "static/../jobs/job/kill",
        "../../../pools",
        "/127.0.0.1:5432/",
        "@169.254.169.254/",
        "api/v1/submissions/create",
        "api/v1/applications/../../../x",
    ],
)
async def test_nothing_else_is_asked_for(path: str, driver: Driver) -> None:
    with pytest.raises(Refused, match="is no page of the Spark UI that is shown here") as refused:
        await spark_ui_pages.show(SparkUi(application_id=APP, url=driver.url), path, "id=1", BASE)
    assert (refused.value.status, driver.asked) == (404, [])


@pytest.mark.parametrize("path", ["jobs/job/kill", "jobs/job/kill/", "stages/stage/kill/"])
async def test_nothing_is_killed(path: str, driver: Driver) -> None:
    with pytest.raises(Refused, match=r"it can only be read.*: evenflow runs cancel") as refused:
        await spark_ui_pages.show(SparkUi(application_id=APP, url=driver.url), path, "id=1", BASE)
    assert (refused.value.status, driver.asked) == (403, [])


@pytest.mark.parametrize(
    "url",
    [
        *(f"http://{host}:4040" for host in ("169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "0.0.0.0", "224.0.0.1")),
        "http://127.0.0.1:80",
        "http://127.0.0.1",
        "http://localhost:4040",
        "http://metadata.google.internal:4040",
        "http://a:b@127.0.0.1:4040",
        "http://127.0.0.1:4040/x",
        "http://127.0.0.1:4040?x=",
        "http://[64:ff9b::a9fe:a9fe]:4040",  # by NAT64, by 6to4 and as compatible with IPv4: where clouds keep their secrets
        "http://[2002:a9fe:a9fe::]:4040",
        "http://[::a9fe:a9fe]:4040",
        "file:///etc/passwd",
        "gopher://127.0.0.1:4040",
        "http://127.0.0.1:99999",
        "",
        None,
    ],
)
def test_an_address_that_no_page_of_spark_has_is_never_asked(url: str | None) -> None:
    with pytest.raises(Refused, match="has told an address that no page of Spark has"):
        spark_ui_pages.ui_kept({"application_id": APP, "url": url, "proxy_base": ""})


@pytest.mark.parametrize("place", ["10.0.0.7:4040", "127.0.0.1:41234", "[fd00::7]:4040"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_addresses_of_drivers_are_asked(scheme: str, place: str) -> None:
    url = f"{scheme}://{place}"
    assert spark_ui_pages.ui_kept({"application_id": APP, "url": url, "proxy_base": ""}).url == url


async def test_what_is_not_the_application_of_the_try_is_asked_for_nothing_more(driver: Driver) -> None:
    """Its port may be another program's by now, and a try may name any."""
    driver.applications = [{"id": "local-18"}]
    with pytest.raises(Refused, match=rf"the application does not answer at {driver.url}"):
        await spark_ui_pages.show(SparkUi(application_id=APP, url=driver.url), "jobs/", "", BASE)
    assert [request.path for request in driver.asked] == ["/api/v1/applications"]


async def test_a_driver_that_is_gone_is_said_to_be() -> None:
    with socket.socket() as nobody:  # has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(Refused, match=rf"cannot be reached from this API server: the application does not answer at {url}"):
            await spark_ui_pages.look(SparkUi(application_id=APP, url=url))


async def test_redirects_stay_with_the_page(driver: Driver) -> None:
    ui = SparkUi(application_id=APP, url=driver.url, proxy_base="/proxy/x")
    led = await spark_ui_pages.show(ui, "", "", BASE)
    assert (led.status_code, led.headers["Location"]) == (303, f"{BASE}/jobs/?a=1")
    with pytest.raises(Refused, match="it leads to another address"):
        await spark_ui_pages.show(ui, "environment/", "", BASE)
    with pytest.raises(Refused, match="it leads nowhere"):
        await spark_ui_pages.show(ui, "SQL/", "", BASE)
    shown = await spark_ui_pages.show(ui, "jobs/", "", BASE)
    assert f'<a href="{BASE}/executors/">' in bytes(shown.body).decode(), "links of a session that was told its base"
    script = await spark_ui_pages.show(ui, "static/webui.js", "", BASE)
    assert script.headers["Content-Type"] == "application/octet-stream"


async def test_what_is_too_large_is_not_passed_on(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.api.limits.SPARK_UI_PAGE", 99)
    with pytest.raises(Refused, match="answers with more than 99 bytes"):
        await spark_ui_pages.show(SparkUi(application_id=APP, url=driver.url), "storage/", "", BASE)


async def test_an_answer_that_is_about_the_browsers_own_login_is_not_passed_on(driver: Driver) -> None:
    assert (await spark_ui_pages.show(SparkUi(application_id=APP, url=driver.url), "executors/", "", BASE)).status_code == 502


def test_a_page_of_nothing_but_links_grows_by_no_more_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SE2: a session says itself what its links begin with."""
    monkeypatch.setattr("evenflow.api.limits.SPARK_UI_PAGE", 10_000)
    body = b'src="/a/' * 1_000
    assert (
        len(spark_ui_pages._with_links(SparkUi(application_id=APP, url="http://127.0.0.1:4040", proxy_base="/a"), body, BASE))
        < len(body) + 10_000
    )


@pytest.mark.parametrize("is_shared", [True, False])
async def test_a_page_of_all_dags_is_for_those_whose_role_counts_everywhere(
    rest: RestClient, client: ExecutionClient, world: World, driver: Driver, api_url: str, is_shared: bool
) -> None:
    """R-SE3: a Spark Connect server shows what the tasks of all do there."""
    await told(client, world, driver.url, is_shared=is_shared)
    world.conn.execute("update dag set bundle = 'main'")
    token = new_operator_token(world.conn, name="eve", role=Role.OPERATOR, scope=PersonScope(bundles=("main",)))
    async with RestClient(api_url, token) as scoped:
        if is_shared:
            with pytest.raises(ApiRefused, match="shows tasks of all DAGs"):
                await scoped.find_spark_ui("sales", "r1", "extract")
        else:
            assert (await scoped.find_spark_ui("sales", "r1", "extract")).application_id == APP
    assert (await rest.find_spark_ui("sales", "r1", "extract")).application_id == APP
