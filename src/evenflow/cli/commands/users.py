"""``evenflow users``: people with passwords, and their rights; ``evenflow sessions``: their logins."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from evenflow.cli.commands.sealed import read_secret
from evenflow.cli.input.params import Limit
from evenflow.cli.input.questions import Yes, check_agreed
from evenflow.cli.input.scopes import Bundles, Pools, Queues, Tags, checked_scope
from evenflow.cli.output.replies import Reply, listed, verb
from evenflow.cli.output.terminal import errors, say
from evenflow.cli.remote import read_pages, remote
from evenflow.contracts import rest
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.errors import BadValue, ParamError

app = App(name="users")
sessions_app = App(name="sessions")

Name = Annotated[str, Parameter(help="As the user types it to log in.")]
RoleOption = Annotated[Role, Parameter(help="What the user may; each role may do what those before it may.")]
AskOption = Annotated[
    bool, Parameter(negative=(), help="Ask for the password, or read it from standard input, instead of making one.")
]
File = Annotated[Path | None, Parameter(name="--file", help="Read the password from this file.")]


@verb(app, "list")
async def list_users(*, limit: Limit = 100) -> Reply:
    """All users, and their rights."""
    async with remote() as client:
        page = await read_pages(client.list_users, limit)
    return listed("users", page, rest.users.User, empty="No users. To make one, type: evenflow users add NAME --role admin")


@verb(app, meant=("create", "new"))
async def add(
    name: Name,
    /,
    *,
    role: RoleOption = Role.VIEWER,
    tag: Tags = None,
    bundle: Bundles = None,
    pool: Pools = None,
    queue: Queues = None,
    ask: AskOption = False,
    file: File = None,
) -> Reply:
    """Make a user. A generated password is printed once, and the user can change it."""
    scope = checked_scope(role, tag, bundle, pool, queue)
    password = _password(file, ask=ask)
    async with remote() as client:
        given = await client.add_user(name=name, role=role, scope=scope, password=password)
    return _told(given, f"{given.name} is a user with the role {role}{_where(scope)}")


@verb(app, meant=("passwd",))
async def set_password(name: Name, /, *, ask: AskOption = False, file: File = None) -> Reply:
    """Give a user another password, and log them out everywhere."""
    password = _password(file, ask=ask)
    async with remote() as client:
        given = await client.set_user_password(name, password=password)
    return _told(given, f"{given.name} has a new password, and is logged out everywhere")


@verb(app)
async def set_role(name: Name, role: Annotated[Role, Parameter(help="What the user may from now on.")], /) -> Reply:
    """Set the role of a user. It holds at once, also for open sessions."""
    async with remote() as client:
        user = await client.change_user(name, role=role)
    return Reply(user, f"{user.name} has the role {user.role}")


@verb(app)
async def set_scope(
    name: Name,
    /,
    *,
    tag: Tags = None,
    bundle: Bundles = None,
    pool: Pools = None,
    queue: Queues = None,
    everywhere: Annotated[bool, Parameter(negative=(), help="The role counts everywhere from now on.")] = False,
) -> Reply:
    """Replace the scope of a user's role: the DAGs, pools and queues in which it counts. It holds at once."""
    scope = checked_scope(None, tag, bundle, pool, queue)
    if everywhere == bool(scope.named):
        raise BadValue(
            "Say where the role counts: --tag, --bundle, --pool or --queue; or that it counts --everywhere, one of them."
        )
    async with remote() as client:
        user = await client.change_user(name, scope=scope)
    return Reply(user, f"{user.name} has the role {user.role}{_where(user.scope) or ', everywhere'}{_lost(user)}")


@verb(app, meant=("delete", "remove"))
async def disable(name: Name, /, *, yes: Yes = False) -> Reply:
    """Log a user out everywhere, and refuse further logins."""
    check_agreed(f"{name} will be logged out everywhere, and cannot log in.", yes=yes)
    async with remote() as client:
        user = await client.change_user(name, is_disabled=True)
    return Reply(user, f"{user.name} is disabled; to let them in again, type: evenflow users enable {user.name}")


@verb(app)
async def enable(name: Name, /) -> Reply:
    """Let a disabled user log in again."""
    async with remote() as client:
        user = await client.change_user(name, is_disabled=False)
    return Reply(user, f"{user.name} may log in again, with the role {user.role}")


@verb(sessions_app, "list")
async def list_sessions(*, limit: Limit = 100) -> Reply:
    """Logged-in browsers: for an admin all, else those that began with the token of this command."""
    async with remote() as client:
        page = await read_pages(client.list_sessions, limit)
    return listed("sessions", page, rest.sessions.SessionSummary, empty="Nobody is logged in.")


@verb(sessions_app, meant=("revoke", "delete"))
async def end(session_id: Annotated[int, Parameter(help="Its number, as `evenflow sessions list` shows it.")], /) -> Reply:
    """Log out a browser, at once."""
    async with remote() as client:
        ended = await client.end_session(session_id)
    return Reply(ended, f"session {ended.session_id} of {ended.name} is ended")


def _where(scope: PersonScope | None) -> str:
    return f", in {scope}" if scope is not None and scope.named else ""


def _lost(user: rest.users.ChangedUser) -> str:
    """What their role does not count in any more: the new scope takes the place of the old one."""
    before, after = user.scope_before, user.scope or PersonScope()
    if before is None or not before.named:
        return "; it counted everywhere before" if after.named else ""
    lost = before.lost(after)
    return f"; no longer in {lost}" if lost.named else ""


def _password(file: Path | None, *, ask: bool) -> str | None:
    """Returns the password, asked for twice on a terminal without showing it, or None: generate one. Raises :class:`ParamError`."""
    if file is None and not ask:
        return None
    password = read_secret("The password", file)
    if file is None and sys.stdin.isatty() and getpass("The same again (not shown): ") != password:
        raise ParamError("These are two different passwords. Nothing was done.")
    return password


def _told(given: rest.users.GivenPassword, words: str) -> Reply:
    """Prints only the password on stdout."""

    def tell() -> None:
        if given.password is None:
            say(words)
        else:
            say(given.password)
            errors.print(f"{words}. The password above is shown once: it is stored nowhere.", soft_wrap=True, highlight=False)

    return Reply(given, tell)
