"""``evenflow login`` and ``evenflow logout``: the command line acts as a user of a server; the user confirms it in a browser."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import errors, local_time
from evenflow.cli.remote import find_api
from evenflow.contracts import rest
from evenflow.core.limits import DEVICE_TOKEN_DAYS, DEVICE_TOKEN_MOST_DAYS, MAX_NAME_CHARS
from evenflow.core.people.roles import Role
from evenflow.errors import ApiRefused, ApiUnavailable, BadValue
from evenflow.runtime.login_file import KeptLogin, forget_login, keep_login, read_login
from evenflow.runtime.settings import load_settings

if TYPE_CHECKING:
    from evenflow.client.rest import RestClient

Server = Annotated[str | None, Parameter(help="Its address, e.g. https://flow.example.com, else the one of EVENFLOW_API_URL.")]
RoleOption = Annotated[Role | None, Parameter(help="What the token is to be for; all that you may when absent.")]
Days = Annotated[int, Parameter(help=f"How long the token is to be good: at most {DEVICE_TOKEN_MOST_DAYS}.")]
Machine = Annotated[str | None, Parameter(help="What the page calls this machine. Else its own name.")]

PATIENCE_S = 60.0  # for a server that restarts meanwhile


@replies
async def login(*, server: Server = None, role: RoleOption = None, days: Days = DEVICE_TOKEN_DAYS, name: Machine = None) -> Reply:
    """Log the command line in as you: confirm it in a browser where you are logged in, by password or single sign-on.

    It prints an address and a code, and waits for ten minutes. The token is kept in ~/.evenflow/login.json (in EVENFLOW_HOME, if
    that is set), readable only by you. From then on commands go to this server, unless EVENFLOW_API_URL or EVENFLOW_TOKEN is set or
    an `evenflow up` runs here. `evenflow sessions list` shows it, too.
    """
    from evenflow.client.rest import RestClient

    if not 1 <= days <= DEVICE_TOKEN_MOST_DAYS:
        raise BadValue(f"--days is from 1 to {DEVICE_TOKEN_MOST_DAYS}, not {days}.")
    settings = load_settings()
    url = (server or find_api(settings).url).rstrip("/")
    async with RestClient(url, "", tls=settings.tls, patience_s=PATIENCE_S) as client:
        machine = (name or socket.gethostname())[:MAX_NAME_CHARS]
        asked = await client.begin_device_login(machine=machine, role=role, days=days)
        page = f"{url.partition(',')[0]}/device"
        errors.print(
            f"Open {page} in a browser where you are logged in, and type: {asked.user_code}", soft_wrap=True, highlight=False
        )
        given = await _answered(client, asked)
    assert given.token is not None
    assert given.name is not None
    assert given.expires_at is not None
    keep_login(KeptLogin(api_url=url, token=given.token, name=given.name, expires_at=given.expires_at.isoformat()))
    words = f"logged in at {url} as {given.name}, with the role {given.role}, until {local_time(given.expires_at)}"
    return Reply({"api_url": url, "name": given.name, "role": given.role, "expires_at": given.expires_at}, words)


@replies
async def logout() -> Reply:
    """End the login of `evenflow login`: the server refuses the token from now on, and the token is deleted here."""
    from evenflow.client.rest import RestClient

    settings = load_settings()
    kept = read_login()
    if kept is None:
        raise BadValue("Nobody is logged in here. To log in, type: evenflow login --server URL")
    try:
        async with RestClient(kept.api_url, kept.token, tls=settings.tls) as client:
            await client.log_out()
    except ApiRefused as error:
        if error.status != 401:  # otherwise it is void already
            raise
    forget_login()
    return Reply({"api_url": kept.api_url, "name": kept.name}, f"{kept.name} is logged out of {kept.api_url}")


async def _answered(client: RestClient, asked: rest.device_logins.DeviceLogin) -> rest.device_logins.DeviceToken:
    """Raises :class:`ApiRefused` when the person refuses, or does not answer in time."""
    pause = asked.interval_s
    while True:
        await asyncio.sleep(pause)
        try:
            given = await client.take_device_token(device_code=asked.device_code)
        except ApiUnavailable:
            if asked.expires_at < datetime.now(UTC):
                raise
            continue
        if given.token is not None:
            return given
        pause = given.interval_s
