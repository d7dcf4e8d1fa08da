"""The execution API for processes that run user code. One table lists every route, its callers and its message."""

from __future__ import annotations

from starlette.routing import Route, Router

from evenflow.api import limits
from evenflow.api.claims import Claims
from evenflow.api.execution.airflow_channel import TryHandlers
from evenflow.api.execution.airflow_clients import SdkClients
from evenflow.api.execution.airflow_mount import TaskExecutionEndpoint
from evenflow.api.execution.asset_values import AssetValueRoutes
from evenflow.api.execution.endpoint import Call, Endpoint, Handler
from evenflow.api.execution.files import FileRoutes
from evenflow.api.execution.once import OnceRoutes
from evenflow.api.execution.secret_finding import LoadedValueRoutes, SecretFinder
from evenflow.api.execution.services import ServiceRoutes
from evenflow.api.execution.tries import TryRoutes
from evenflow.api.execution.triggers import TriggerRoutes
from evenflow.api.execution.values import FolderRoutes, ValueRoutes, check_held
from evenflow.api.execution.waiting import WaitingRoutes
from evenflow.api.inbox import Inbox
from evenflow.api.judge import Judge
from evenflow.api.logs.store import LogStore
from evenflow.api.secret_stores.lookup import SecretStores
from evenflow.api.tokens import FLEETS, Tokens
from evenflow.api.triggers import TriggerClaims
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.core.limits import MAX_INLINE_XCOM, MAX_MESSAGE_BYTES
from evenflow.core.service import USER_CODE_KINDS
from evenflow.store.db.connect import AsyncPool
from evenflow.wire import messages, questions
from evenflow.wire.large_values import LargeValues
from evenflow.wire.messages import AIRFLOW_API, SCHEMA, Message
from evenflow.wire.objects import ObjectStorage
from evenflow.wire.triggers import TRIGGER_QUESTIONS, ClaimTriggers, TriggerReports


def execution_routes(
    pool: AsyncPool,
    *,
    reports: AsyncPool,
    beats: AsyncPool,
    tokens: Tokens,
    versions: Versions,
    claims: Claims,
    trigger_claims: TriggerClaims,
    logs: LogStore,
    vault: Vault,
    stores: SecretStores,
    judge: Judge,
    storage: ObjectStorage,
) -> Router:
    """``reports`` and ``beats`` are the connection pools for reports and for beats."""
    services = ServiceRoutes(pool, beats, claims, tokens)
    tries = TryRoutes(pool, Inbox(reports), tokens, versions, claims, logs, vault)
    files = FileRoutes(pool, versions, judge)
    triggers = TriggerRoutes(reports, tokens, vault, trigger_claims)
    finder = SecretFinder(pool, vault, stores)
    loaded = LoadedValueRoutes(pool, finder)
    body = limits.EXECUTION_BODY
    answers = _answers(pool, tries, versions, vault, finder, judge, storage) | {"watched": triggers.watched}

    table: list[tuple[str, str, Handler, tuple[str, ...], type[Message] | None, int]] = [
        # method, path, handler, kinds of token, type of the message (None: raw bytes), limit of the body
        ("POST", "/claim", tries.claim, ("worker",), messages.Claim, MAX_MESSAGE_BYTES),
        ("POST", "/reports", tries.report, ("worker",), messages.Reports, body),
        ("POST", "/logs", tries.log, ("worker", "triggerer"), messages.Logs, body),
        ("POST", "/triggers/claim", triggers.claim, ("triggerer",), ClaimTriggers, MAX_MESSAGE_BYTES),
        ("POST", "/triggers/reports", triggers.report, ("triggerer",), TriggerReports, body),
        ("POST", "/services/{service_id:int}/beat", services.beat, USER_CODE_KINDS, messages.Beat, MAX_MESSAGE_BYTES),
        ("POST", "/services", services.register, FLEETS, messages.Register, MAX_MESSAGE_BYTES),
        ("POST", "/xcom", tries.push, ("try",), messages.XComPush, MAX_MESSAGE_BYTES),
        ("POST", "/xcom/pull", tries.pull, ("try",), messages.XComPull, MAX_MESSAGE_BYTES),
        ("POST", "/progress", tries.progress, ("try",), messages.Progress, MAX_MESSAGE_BYTES),
        ("POST", "/files/seen", files.seen, ("processor",), messages.FilesSeen, body),
        ("POST", "/files/lease", files.lease, ("processor",), messages.FilesLease, MAX_MESSAGE_BYTES),
        ("POST", "/files/parsed", files.parsed, ("processor",), messages.ParsedFile, limits.PARSED_BODY),
        ("PUT", "/code/{code_hash}", files.put_code, ("processor",), None, limits.CODE_BODY),
        ("GET", "/code/{code_hash}", files.get_code, USER_CODE_KINDS, None, 0),
        ("POST", "/values", loaded.give, USER_CODE_KINDS, messages.AskValue, MAX_MESSAGE_BYTES),
        *(
            ("POST", f"/ask/{name}", answer, _askers(name), questions.QUESTIONS[name][0], MAX_MESSAGE_BYTES)
            for name, answer in answers.items()
        ),
    ]
    handlers = TryHandlers(answers, tries, LargeValues(storage, MAX_INLINE_XCOM), pool, vault)
    clients = SdkClients(pool, tokens, services, tries)
    airflow = TaskExecutionEndpoint(tokens, versions, claims, handlers, clients)
    return Router(
        [
            Route(f"{AIRFLOW_API}/{{path:path}}", airflow),
            *(
                Route(f"{SCHEMA}{path}", Endpoint(tokens, handler, kinds=kinds, reads=reads, body_limit=limit), methods=[method])
                for method, path, handler, kinds, reads, limit in table
            ),
        ],
        redirect_slashes=False,
    )


def _answers(
    pool: AsyncPool,
    tries: TryRoutes,
    versions: Versions,
    vault: Vault,
    finder: SecretFinder,
    judge: Judge,
    storage: ObjectStorage,
) -> dict[str, Handler]:
    """Returns the handler of each question of :data:`evenflow.wire.questions.QUESTIONS`."""
    values = ValueRoutes(pool, versions, vault, finder)
    waiting = WaitingRoutes(pool, versions, judge)
    once = OnceRoutes(pool, vault)
    of_assets = AssetValueRoutes(pool, versions)

    def held(handler: Handler) -> Handler:
        """Wraps a handler to answer only tries in hand: a token is valid for longer. Other handlers check this themselves."""

        async def checked(call: Call) -> Message | bytes | None:
            async with pool.connection() as conn:
                await check_held(conn, call.asker)
            return await handler(call)

        return checked

    return {
        "element": tries.element,
        "prior_run": held(tries.prior_run),
        "connection": values.connection,
        "variable": values.variable,
        "set_variable": values.set_variable,
        "delete_variable": values.delete_variable,
        "previous_run": held(values.previous_run),
        "folder": held(FolderRoutes(pool, storage).begin),
        "rendered": values.rendered,
        "record": values.record,
        "once": once.ask,
        "set_once": once.set,
        "forget_once": once.forget,
        "asset_value": held(of_assets.read),
        "set_asset_value": of_assets.write,
        "forget_asset_values": of_assets.forget,
        "waited": waiting.waited,
        "triggering_events": held(waiting.triggering_events),
        "inlet_events": held(waiting.inlet_events),
        "inlet_assets": held(waiting.inlet_assets),
        "states": held(waiting.states),
        "trigger": waiting.trigger,
    }


def _askers(question: str) -> tuple[str, ...]:
    """Returns the kinds of token that may ask this question."""
    return ("try", "trigger") if question in TRIGGER_QUESTIONS else ("try",)
