"""The API of commands: its address and token, and lists that are longer than one of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from evenflow.contracts import rest
from evenflow.core.hosts import is_loopback
from evenflow.core.limits import PAGE
from evenflow.errors import SettingsError
from evenflow.runtime.login_file import read_login
from evenflow.runtime.settings import Settings, load_settings
from evenflow.runtime.up import presence

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

T = TypeVar("T")


@asynccontextmanager
async def remote(settings: Settings | None = None) -> AsyncIterator[RestClient]:
    """Yields the API of EVENFLOW_API_URL if that is set, else of the `evenflow up` on this home, else of `evenflow login`, else at
    the default port.
    """
    from evenflow.client.rest import RestClient

    settings = settings or load_settings()
    async with RestClient(find_api(settings), find_token(settings), tls=settings.tls) as client:
        yield client


def find_api(settings: Settings) -> str:
    if "api_url" not in settings.model_fields_set:
        running = presence.find(settings.home)
        if running is not None:
            return running.api_url
        kept = read_login() if settings.token is None else None  # a given token is for another one
        if kept is not None:
            return kept.api_url
    return settings.api_url


def find_token(settings: Settings) -> str:
    """Returns the token for the API of :func:`find_api`. Raises :class:`SettingsError` where it does not belong."""
    settings.check_destination()
    if settings.token is not None:
        return settings.token.get_secret_value()
    url, running = find_api(settings), presence.find(settings.home)
    kept = read_login()
    if kept is not None and kept.api_url == url.rstrip("/") and not (running is not None and url == running.api_url):
        if kept.is_over:
            raise SettingsError(f"The login of {kept.name} at {url} is over. Type: evenflow login --server {url}")
        return kept.token
    if not (running is not None and url == running.api_url) and not is_loopback(urlsplit(url).hostname or ""):
        raise SettingsError(
            f"{settings.operator_token_file} is for the `evenflow up` of this home, not for {url}. Log in there "
            f"(evenflow login --server {url}), or set EVENFLOW_TOKEN to one of that API (there: evenflow tokens create operator)."
        )
    try:
        return settings.operator_token_file.read_text().strip()
    except FileNotFoundError:
        raise SettingsError(
            f"There is no token to show the API: {settings.operator_token_file} does not exist (evenflow up makes it). "
            "Start Evenflow (evenflow up), or set EVENFLOW_TOKEN and EVENFLOW_API_URL."
        ) from None


async def read_pages(read: Callable[[int, int], Awaitable[rest.record.Page[T]]], limit: int) -> rest.record.Page[T]:
    """Returns the first ``limit`` items, over several answers if needed; ``read`` gets a limit and an offset."""
    page = await read(min(limit, PAGE), 0)
    items, more = page.items, page.more
    while more and len(items) < limit:
        page = await read(min(limit - len(items), PAGE), len(items))
        items, more = items + page.items, page.more
    return page.model_copy(update={"items": items, "limit": limit, "offset": 0, "more": more})
