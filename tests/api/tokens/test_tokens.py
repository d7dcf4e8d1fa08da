"""Tokens: what they say, and that no route can be used without the right one."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import jwt
import pytest
from starlette.routing import Route

from evenflow.api import reports, triggers
from evenflow.api import tokens as tokens_module
from evenflow.api.execution.app import execution_routes
from evenflow.api.refusals import refusal
from evenflow.api.tokens import (
    SERVICE_TTL_S,
    TRIGGER_TTL_S,
    USER_CODE_KINDS,
    FleetToken,
    OperatorToken,
    ServiceToken,
    Token,
    Tokens,
    TriggerToken,
    TryToken,
    mint,
    verify,
)
from evenflow.client.execution import ExecutionClient
from evenflow.client.http import RETRIED
from evenflow.core.ending import Ending
from evenflow.core.limits import MAX_RUN_SECONDS, MAX_WAIT_S
from evenflow.errors import ApiRefused, KeyNotKnownYet, NotAllowed, StaleEpoch
from evenflow.store.serving.tokens import KeyState
from evenflow.wire import messages as m
from evenflow.wire.triggers import TriggerReport
from tests.api.world import World
from tests.apis import running_api
from tests.tokens import HOUR_S, JTI, LISTED, VIEWERS, fleet_token, key_state, service_token

KEY = b"k" * 32
KEYS = KeyState("here", {1: KEY}, frozenset(), LISTED, incarnation=7, quiet_s=0.0, rights=VIEWERS)
TRY = TryToken(epoch=5, run_key=2**60, task_index=3, map_index=-1, try_number=2)
TRIGGER = TriggerToken(epoch=5, run_key=2**60, task_index=3, map_index=-1, try_number=2, claim=4)


@pytest.mark.parametrize(
    "token",
    [
        FleetToken("worker", 3),
        FleetToken("processor"),
        ServiceToken("worker", 12, 3, fleet_jti=JTI),
        FleetToken("worker", scope=("pods",), epoch=5),
        ServiceToken("worker", 12, scope=("pods",), epoch=5),
        TRY,
        TRIGGER,
        OperatorToken("ada", 4),
    ],
)
def test_a_token_says_what_was_minted(token: Token) -> None:
    assert verify(KEYS, mint(KEYS, token, ttl=60, jti=JTI)) == token


def test_a_token_is_what_any_reader_of_jwt_takes() -> None:
    text = mint(KEYS, OperatorToken("ä"), ttl=60)
    assert jwt.get_unverified_header(text) == {"alg": "HS256", "kid": "1", "typ": "JWT"}
    claims = jwt.decode(text, KEY, algorithms=["HS256"], audience="rest", issuer="here")
    assert (claims["k"], claims["sub"]) == ("operator", "ä")


def forged(claims: dict[str, object], key: bytes | str = KEY, algorithm: str = "HS256", **header: object) -> str:
    made = {"iss": "here", "aud": "execution", "iat": int(time.time()), "jti": "x"}
    return jwt.encode({**made, **claims}, key, algorithm=algorithm, headers={"kid": "1", **header})


def test_tokens_that_are_not_good() -> None:
    good = {"k": "worker", "s": 1, "i": 7}
    later = time.time() + 60
    bad = {
        "signed with another key": mint(replace(KEYS, keys={1: b"x" * 32}), FleetToken("worker"), ttl=60),
        "of a key that is gone": mint(replace(KEYS, keys={0: KEY}), FleetToken("worker"), ttl=60),
        "no token": "nonsense",
        "for ever": forged(good),
        "for people, of a worker": forged({**good, "exp": later, "aud": "rest"}),
        "without a name of its own": forged({**good, "exp": later, "jti": None}),
        "of no key": jwt.encode({**good, "exp": later, "iss": "here"}, KEY),
        "not signed": forged({**good, "exp": later}, "", "none"),
        "not signed, with a key": forged({**good, "exp": later}, "", "none", kid="1"),
        "of another algorithm": forged({**good, "exp": later}, KEY * 2, "HS512"),
        "of a key that is no number": forged({**good, "exp": later}, kid="../1"),
        "with a key of its own": forged({**good, "exp": later}, b"x" * 32, jwk={"kty": "oct", "k": "eHh4"}),
        "cut short": mint(KEYS, TRY, ttl=60)[:-1],
    }
    for what, text in bad.items():
        with pytest.raises(NotAllowed, match="not one of this Evenflow's"):
            pytest.fail(f"{what}: {verify(KEYS, text)}")
    with pytest.raises(NotAllowed, match="expired"):
        verify(KEYS, mint(KEYS, TRY, ttl=-1))
    with pytest.raises(NotAllowed, match="kind that this Evenflow does not know"):
        verify(KEYS, forged({"k": "king", "exp": later}))


@pytest.mark.parametrize("token", [FleetToken("worker", 3), OperatorToken("ada", 4), ServiceToken("worker", 12, 3)])
def test_the_keys_alone_make_no_token_of_a_person_a_fleet_or_a_service(token: FleetToken | OperatorToken | ServiceToken) -> None:
    """R-SE1: nor do they with the number of a good one, which has another name."""
    of = "fleet_id" if isinstance(token, ServiceToken) else "token_id"
    for others in (token, replace(token, **{of: 77}), replace(token, **{of: 0})):
        listed = {number: digest for number, digest in LISTED.items() if number != 0}
        with pytest.raises(NotAllowed, match="not in this Evenflow's list"):
            verify(replace(KEYS, listed=listed), mint(KEYS, others, ttl=60))
    with pytest.raises(NotAllowed, match="expired"):
        verify(replace(KEYS, listed={}), mint(KEYS, token, ttl=-1))  # its row is deleted by then


async def test_nothing_is_refused_for_good_because_of_a_key_that_is_not_read_yet() -> None:
    """Another API signs with it already. Reports come again: a success must not become a failure, nor an exit be forgotten."""
    newer = replace(KEYS, keys={1: KEY, 2: b"y" * 32})
    of_try = m.Report(token=mint(newer, TRY, ttl=60), ending=Ending(outcome="success"))
    of_trigger = TriggerReport(token=mint(newer, TRIGGER, ttl=60), event=b"1")
    nowhere: Any = None
    with pytest.raises(KeyNotKnownYet, match="signed with key 2, and this API has read keys up to 1"):
        await reports.store(nowhere, Tokens(KEYS), nowhere, [of_try])
    with pytest.raises(KeyNotKnownYet) as refused:
        await triggers.store(nowhere, Tokens(KEYS), nowhere, [of_trigger])
    assert refusal(refused.value).status in RETRIED


def test_a_token_names_its_evenflow_and_another_refuses_it() -> None:
    """R-SE1: with words that say so, also when that one has more keys, and each token has a name of its own."""
    there = replace(KEYS, installation="there", keys={1: KEY, 2: b"y" * 32})
    for keys in (there, replace(there, keys=KEYS.keys)):
        with pytest.raises(NotAllowed, match=r"of another Evenflow \('there'\); this one is 'here'"):
            verify(KEYS, mint(keys, OperatorToken("ada"), ttl=60))
    claims = [jwt.decode(mint(KEYS, TRY, ttl=60), options={"verify_signature": False}) for _ in range(2)]
    assert [(c["iss"], c["aud"], c["exp"] - c["iat"]) for c in claims] == [("here", "execution", 60)] * 2
    assert claims[0]["jti"] != claims[1]["jti"]


def test_keys_change_while_tokens_are_in_use() -> None:
    tokens, after = Tokens(KEYS), replace(KEYS, keys={1: KEY, 2: b"n" * 32})
    old, service = mint(KEYS, TRY, ttl=60), tokens.for_service(FleetToken("worker", 3, jti=JTI), 12)
    assert tokens.renewed(service) is None
    tokens.use(after)
    assert tokens.verify(old) == TRY, "two keys are good at once"
    renewed = tokens.renewed(service)
    assert renewed is not None
    assert jwt.get_unverified_header(renewed)["kid"] == jwt.get_unverified_header(tokens.for_try(TRY))["kid"] == "2"
    tokens.use(replace(after, keys={2: b"n" * 32, 3: b"m" * 32}))
    assert tokens.verify(renewed) == ServiceToken("worker", 12, 3)
    for text in (old, service):
        with pytest.raises(NotAllowed):
            tokens.verify(text)


def test_a_revoked_token_takes_with_it_what_came_from_it() -> None:
    tokens = Tokens(KEYS)
    fleet, operator = mint(KEYS, FleetToken("worker", 3), ttl=60, jti=JTI), mint(KEYS, OperatorToken("ada", 4), ttl=60, jti=JTI)
    service = tokens.for_service(FleetToken("worker", 3, jti=JTI), 12)
    other = tokens.for_service(FleetToken("worker", 9, jti=JTI), 13)
    for text in (fleet, operator, service, other):
        tokens.verify(text)
    tokens.use(replace(KEYS, revoked=frozenset({3, 4})))
    for text in (fleet, operator, service):
        with pytest.raises(NotAllowed, match="revoked"):
            tokens.verify(text)
    assert tokens.verify(other) == ServiceToken("worker", 13, 9)


def test_what_belongs_to_another_incarnation_of_the_database_is_void() -> None:
    tokens = Tokens(KEYS)
    texts = [tokens.for_service(FleetToken("worker", jti=JTI), 12), tokens.for_try(TRY)]
    tokens.use(replace(KEYS, incarnation=8))
    for text in texts:
        with pytest.raises(NotAllowed, match="set back to a backup"):
            tokens.verify(text)
    assert tokens.verify(mint(KEYS, FleetToken("worker"), ttl=60, jti=JTI)) == FleetToken("worker"), "fleets come back"


def test_a_service_is_given_a_fresh_token_when_half_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(KEYS)
    text = tokens.for_service(FleetToken("worker", jti=JTI), 12)
    later = time.time() + SERVICE_TTL_S / 2 + 60
    monkeypatch.setattr(tokens_module, "time", SimpleNamespace(time=lambda: later))
    fresh = tokens.renewed(text)
    assert fresh is not None
    assert tokens.verify(fresh) == ServiceToken("worker", 12)
    assert tokens.renewed(fresh) is None


def test_a_remembered_token_expires_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(KEYS)
    token = mint(KEYS, TRY, ttl=60)
    assert tokens.verify(token) == TRY
    later = time.time() + 61
    monkeypatch.setattr(tokens_module, "time", SimpleNamespace(time=lambda: later))
    with pytest.raises(NotAllowed, match="expired"):
        tokens.verify(token)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_try_can_report_until_the_longest_timeout(monkeypatch: pytest.MonkeyPatch, remembered: bool) -> None:
    """R-CS1: what a task may take is what its token is good for, by an API that gave it out and by one that began since."""
    text = (tokens := Tokens(KEYS)).for_try(TRY)
    later = time.time() + MAX_RUN_SECONDS
    monkeypatch.setattr(tokens_module, "time", SimpleNamespace(time=lambda: later))
    assert (tokens if remembered else Tokens(KEYS)).verify(text) == TRY
    assert TRIGGER_TTL_S > MAX_WAIT_S


def test_the_memory_for_tokens_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "CACHED_TOKENS", 3)
    tokens = Tokens(KEYS)
    for epoch in range(10):
        tokens.verify(mint(KEYS, replace(TRY, epoch=epoch), ttl=60))
        tokens.for_try(replace(TRY, epoch=100 + epoch))
    assert len(tokens._seen) == 3


# -- every route -------------------------------------------------------------------------------------------------------


FOR_EVERYONE = {
    "/api/v1/problems/{code}": {"get"},  # what a refusal means
    "/api/v1/session": {"post"},  # where people show a token, or a code
    **{f"/api/v1/device-logins{path}": {"post"} for path in ("", "/token")},  # where command lines ask for one
    **{f"/api/v1/identity{path}": {"get"} for path in ("", "/login", "/callback", "/logout")},  # the way to a provider and back
}


def every_route() -> list[tuple[str, str, frozenset[str]]]:
    """(method, path, kinds of token that it takes), read from the applications themselves."""
    routes = []
    parts = dict.fromkeys(
        ("reports", "beats", "tokens", "versions", "claims", "trigger_claims", "logs", "vault", "stores", "judge", "storage")
    )
    for route in execution_routes(None, **parts).routes:
        assert isinstance(route, Route)
        path = route.path.replace("{service_id:int}", "1").replace("{code_hash}", "0" * 64)
        routes += [(method, path, route.endpoint._kinds) for method in route.methods or () if method != "HEAD"]
    for path, methods in _rest_paths().items():
        for method in methods - FOR_EVERYONE.get(path, set()):
            operator = frozenset({"operator"})
            routes.append((method.upper(), path.replace("{", "").replace("}", ""), operator))
    return routes


def _rest_paths() -> dict[str, set[str]]:
    from evenflow.api.rest.app import described_rest

    paths = described_rest().openapi()["paths"]
    return {path: set(methods) for path, methods in paths.items() if not path.startswith(("/metrics", "/health"))}


def test_there_are_routes() -> None:
    assert len(every_route()) > 24


@pytest.fixture
def tokens(world: World, operator_token: str) -> dict[str, str]:
    """A good one of each kind."""
    world.dispatch(world.run(world.add_dag()), 1)
    services = {kind: service_token(world.conn, kind, 1) for kind in USER_CODE_KINDS}
    fleets = {f"{kind} fleet": fleet_token(world.conn, kind) for kind in USER_CODE_KINDS}
    trigger = mint(key_state(world.conn), TRIGGER, ttl=HOUR_S)
    return {**services, **fleets, "operator": operator_token, "try": world.try_token(1), "trigger": trigger}


def void_tokens(world: World) -> dict[str, str]:
    """Of each kind that there is, some that were good once or never."""
    state, later = key_state(world.conn), time.time() + HOUR_S
    stolen = {"k": "operator", "sub": "eve", "exp": later, "iss": state.installation, "aud": "rest", "iat": 1, "jti": "x"}
    kinds: dict[str, Token] = {
        "service": ServiceToken("worker", 1),
        "try": TRY,
        "trigger": TRIGGER,
        "operator": OperatorToken("ada"),
    }
    void = {f"expired {name}": mint(state, token, ttl=-5) for name, token in kinds.items()}
    foreign = replace(state, keys={1: b"x" * 32})
    void |= {f"{name} signed by another": mint(foreign, token, ttl=HOUR_S) for name, token in kinds.items()}
    before = replace(state, incarnation=1)
    void |= {f"{name} of before a restore": mint(before, token, ttl=HOUR_S) for name, token in kinds.items() if name != "operator"}
    other = replace(state, installation="x")
    void |= {f"{name} of another Evenflow": mint(other, token, ttl=HOUR_S) for name, token in kinds.items()}
    void["garbage"] = "garbage"
    void["not signed"] = jwt.encode(stolen, "", algorithm="none", headers={"kid": "1"})
    void["signed with the name of the key"] = jwt.encode(stolen, "1", algorithm="HS256", headers={"kid": "1"})
    void["of another algorithm"] = jwt.encode(stolen, state.keys[1] * 2, algorithm="HS512", headers={"kid": "1"})
    return void


@pytest.mark.system
async def test_no_route_works_without_the_right_token(api_url: str, tokens: dict[str, str], world: World) -> None:
    """R-CS1"""
    wrong: list[str] = []
    void = void_tokens(world)
    async with aiohttp.ClientSession() as session:

        async def status(method: str, path: str, token: str | None) -> int:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            async with session.request(method, f"{api_url}{path}", headers=headers) as answer:
                return answer.status

        for method, path, kinds in every_route():
            cases = {"nothing": (None, 401), **{case: (token, 401) for case, token in void.items()}}
            cases |= {kind: (token, 403) for kind, token in tokens.items() if kind not in kinds}
            for case, (token, expected) in cases.items():
                if (found := await status(method, path, token)) != expected:
                    wrong.append(f"{method} {path} with {case}: {found}")
            answers = {kind: await status(method, path, tokens[kind]) for kind in kinds}
            wrong += [f"{method} {path} with {kind}: {found}" for kind, found in answers.items() if found in (401, 403, 500)]
    assert wrong == []


async def test_a_refusal_says_what_is_wrong(api_url: str, tokens: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{api_url}/api/v1/dags") as answer:
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            error = await answer.json()
        assert error["type"] == "/api/v1/problems/unauthorized"
        assert error["hint"] == "Set EVENFLOW_TOKEN."
        headers = {"Authorization": f"Bearer {tokens['worker']}"}
        async with session.get(f"{api_url}/api/v1/dags", headers=headers) as answer:
            assert (await answer.json())["type"] == "/api/v1/problems/forbidden"
    refused = ExecutionClient(api_url, tokens["operator"])
    with pytest.raises(ApiRefused, match="A token of kind 'operator' may not do this; it takes: worker") as error_info:
        await refused.claim(m.Claim(service_id=1, request_key="k", slots=1, queues=["default"]))
    assert error_info.value.status == 403
    await refused.close()


async def test_one_try_cannot_act_for_another(client: ExecutionClient, world: World) -> None:
    """R-CS1, R-CS3: all that a try can name is signed into its token; another try's data stays as it is."""
    version = world.add_dag()
    first, second = world.run(version), world.run(version, "r2")
    world.dispatch(first, 1)
    world.dispatch(second, 2)
    one, two = world.try_token(1), world.try_token(2)
    await client.push_xcom(two, m.XComPush(key="secret", value=b'"of two"'))
    await client.push_xcom(one, m.XComPush(key="secret", value=b'"of one"'))
    assert (await client.pull_xcom(one, m.XComPull(task_id="extract", key="secret"))).value == b'"of one"'
    await client.report(m.Reports(reports=[m.Report(token=one, ending=Ending(outcome="success", result=b"1"))]))
    await client.send_logs(m.Logs(chunks=[m.LogChunk(token=one, offset=0, data=b"one")]))
    await client.send_progress(one, m.Progress(label="one", done=1, total=2))
    assert world.all("select run_key, epoch from report") == [(first, 1)]
    assert world.all("select run_key from xcom where key = 'return_value'") == [first]
    assert world.all("select run_key, epoch from task_progress") == [(first, 1)]
    assert world.one("select value from xcom where run_key = %s", second) == "of two"


async def test_one_service_cannot_speak_for_another(api_url: str, worker_token: str, processor_token: str, world: World) -> None:
    """R-CS1"""
    worker, processor = ExecutionClient(api_url, worker_token), ExecutionClient(api_url, processor_token)
    worker._credential.take(service_token(world.conn, "worker", 7))
    processor._credential.take(service_token(world.conn, "processor", 7))
    for call in (
        worker.claim(m.Claim(service_id=8, request_key="k", slots=1, queues=["default"])),
        worker.beat(8, m.Beat(state="stopped")),
        processor.lease_files(m.FilesLease(service_id=8, bundles=["main"], limit=1, lease_s=1.0)),
    ):
        with pytest.raises(ApiRefused, match="This token is of service 7; it cannot speak for service 8"):
            await call
    await worker.close()
    await processor.close()


async def test_what_a_worker_says_changes_no_state(client: ExecutionClient, worker: int, world: World) -> None:
    """R-CS1: all that its tokens let it send are reports, logs and values; the state is a scheduler's."""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    states = "select t.state, t.epoch, t.try_number, r.state from task_instance t join dag_run r using (run_key)"
    before = world.all(states)
    (mine,) = (await client.claim(m.Claim(service_id=worker, request_key="k", slots=1, queues=["default"]))).assignments
    await client.report(m.Reports(reports=[m.Report(token=mine.token)]))
    for outcome in ("success", "failed", "failed_for_good", "skipped", "rescheduled", "cannot_start"):
        await client.report(m.Reports(reports=[m.Report(token=mine.token, ending=Ending(outcome=outcome))]))
    await client.beat(worker, m.Beat(state="stopped"))
    assert world.all(states) == before
    assert world.one("select count(*) from report") == 7


async def test_a_try_that_is_over_writes_nothing(client: ExecutionClient, world: World) -> None:
    """R-CS3"""
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    token = world.try_token(1)
    world.end(1)
    world.dispatch(run, 2, tries=2)
    with pytest.raises(StaleEpoch, match="This try is over"):
        await client.push_xcom(token, m.XComPush(key="k", value=b"1"))
    with pytest.raises(StaleEpoch):
        await client.send_progress(token, m.Progress(label="x", done=0, total=0))
    answer = await client.send_logs(m.Logs(chunks=[m.LogChunk(token=token, offset=0, data=b"late")]))
    assert answer.offsets == [m.REFUSED_LOG]
    assert world.one("select (select count(*) from xcom) + (select count(*) from task_progress)") == 0


async def test_a_host_may_bring_its_own_operator_token(database_url: str, tmp_path: Path) -> None:
    async with running_api(database_url, tmp_path, operator_token="sesame") as service, aiohttp.ClientSession() as session:
        for token, status in (("sesame", 200), ("sesam", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            async with session.get(f"http://127.0.0.1:{service.port}/api/v1/dags", headers=headers) as answer:
                assert answer.status == status
