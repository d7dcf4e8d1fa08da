"""The API of commands: its address and token, and lists that are longer than one of its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from evenflow.contracts import rest
from evenflow.core.hosts import is_loopback
from evenflow.core.limits import PAGE
from evenflow.errors import SettingsError
from evenflow.runtime.login_file import KeptLogin, read_login
from evenflow.runtime.settings import Settings, load_settings
from evenflow.runtime.up import presence

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundApi:
    """The API that commands ask. ``is_here``: it is that of the `evenflow up` on this home; ``login``: that of `evenflow login`
    there.
    """

    url: str
    is_here: bool = False
    login: KeptLogin | None = None

    def token(self, settings: Settings) -> str:
        """Raises :class:`SettingsError` where there is none, or where it does not belong."""
        settings.check_destination()
        if settings.token is not None:
            return settings.token.get_secret_value()
        if self.login is not None:
            if self.login.is_over:
                raise SettingsError(
                    f"The login of {self.login.name} at {self.url} is over. Type: evenflow login --server {self.url}"
                )
            return self.login.token
        if not self.is_here and not is_loopback(urlsplit(self.url).hostname or ""):
            raise SettingsError(
                f"{settings.operator_token_file} is for the `evenflow up` of this home, not for {self.url}. Log in there "
                f"(evenflow login --server {self.url}), or set EVENFLOW_TOKEN to one of that API (there: evenflow tokens create "
                "operator --database)."
            )
        try:
            return settings.operator_token_file.read_text().strip()
        except FileNotFoundError:
            raise SettingsError(
                f"There is no token to show the API: {settings.operator_token_file} does not exist (evenflow up makes it). "
                "Start Evenflow (evenflow up), or set EVENFLOW_TOKEN and EVENFLOW_API_URL."
            ) from None


def find_api(settings: Settings) -> FoundApi:
    """Returns the API of EVENFLOW_API_URL if that is set, else of the `evenflow up` on this home, else of `evenflow login`, else at
    the default port.
    """
    is_named = "api_url" in settings.model_fields_set
    running = presence.find(settings.home)
    if running is not None and (not is_named or settings.api_url == running.api_url):
        return FoundApi(running.api_url, is_here=True)
    login = read_login() if settings.token is None else None  # a given token is for another one
    url = settings.api_url if is_named or login is None else login.api_url
    return FoundApi(url, login=login if login is not None and login.api_url == url.rstrip("/") else None)


@asynccontextmanager
async def remote(settings: Settings | None = None) -> AsyncIterator[RestClient]:
    """Yields the API of :func:`find_api`."""
    from evenflow.client.rest import RestClient

    settings = settings or load_settings()
    api = find_api(settings)
    async with RestClient(api.url, api.token(settings), tls=settings.tls) as client:
        yield client


async def read_pages(read: Callable[..., Awaitable[rest.record.Page[T]]], limit: int) -> rest.record.Page[T]:
    """Returns the first ``limit`` items, over several answers if needed; ``read`` gets a limit and a cursor."""
    page = await read(limit=min(limit, PAGE))
    items = page.items
    while page.next is not None and len(items) < limit:
        page = await read(limit=min(limit - len(items), PAGE), cursor=page.next)
        items = items + page.items
    return page.model_copy(update={"items": items, "limit": limit})
