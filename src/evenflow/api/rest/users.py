"""Users: who logs in with a password, and what they may. The roles of these routes say who may make users."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request

from evenflow.api.refusals import Forbidden, Refused
from evenflow.api.rest.context import Actor, ApiContext, Connection, InContext, InSlice, address_of, caller_of
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.passwords import new_password
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import WrongPassword
from evenflow.api.tokens import SessionToken
from evenflow.contracts.rest.record import ObjectName, Page
from evenflow.contracts.rest.users import ChangedUser, GivenPassword, PasswordChange, PasswordRequest, User, UserChange, UserRequest
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, ScopedBy, flaw_of_rights
from evenflow.errors import BadValue
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import users

routes = Routes("Users")


@routes.get("/users", Role.ADMIN)
async def list_users(http: Request, conn: Connection, query: InSlice) -> Page[User]:
    """Users by name."""
    part = part_of(http, query, str)
    return part.page(Page[User], await users.list_users(conn, limit=part.limit, after=part.after))


@routes.post("/users", Role.ADMIN, status_code=201)
async def add_user(within: InContext, actor: Actor, request: UserRequest) -> GivenPassword:
    """Makes a user. A password that is made for them is in the answer, once; they can change it."""
    check_rights(request.role, request.scope)
    made, stored = await _password(within, request.password)
    async with within.pool.connection() as conn:
        if not await users.insert_user(conn, request.name, role=request.role, scope=request.scope, password=stored, by=actor):
            raise Refused(409, "name_taken", f"There is a user {request.name!r}.", hint="To see all, type: evenflow users list")
    return GivenPassword(name=request.name, password=made)


@routes.patch("/users/{name}", Role.ADMIN)
async def change_user(conn: Connection, actor: Actor, name: str, change: UserChange) -> ChangedUser:
    """Says what a user may, where, and whether they may log in. It holds at once, also in sessions that they have."""
    before = await _found(conn, name)
    check_rights(change.role or Role(before.role), change.scope or before.scope)
    changes: dict[str, Any] = {"role": change.role, "scope": change.scope, "is_disabled": change.is_disabled}
    if not await users.change_user(conn, name, **changes, by=actor):
        raise Refused(
            409, "last_admin", f"{name} is the last admin.", hint="First make another one: evenflow users set-role NAME admin"
        )
    return ChangedUser(**(await _found(conn, name)).model_dump(), scope_before=before.scope)


@routes.put("/users/{name}/password", Role.ADMIN)
async def set_user_password(
    within: InContext, actor: Actor, name: Annotated[ObjectName, Path()], request: PasswordRequest
) -> GivenPassword:
    """Gives a user another password, and logs them out everywhere."""
    async with within.pool.connection() as conn:
        await _found(conn, name)
    made, stored = await _password(within, request.password)
    async with within.pool.connection() as conn:
        await users.set_password(conn, name, stored, by=actor)
    return GivenPassword(name=name, password=made)


@routes.put("/session/password", Role.VIEWER, ScopedBy.OWN)
async def change_password(within: InContext, http: Request, request: PasswordChange) -> GivenPassword:
    """Changes your own password. You are logged out everywhere else."""
    caller = caller_of(http)
    if not (isinstance(caller, SessionToken) and caller.by_password and not caller.is_vouched):
        raise Forbidden("Only who has logged in with a password has one to change.")
    with within.logins.attempt(address_of(http), caller.name):
        async with within.pool.connection() as conn:
            found = await users.find_user(conn, caller.name)
        if not (await within.passwords.check(request.old, found.password if found else None)).is_right:
            raise WrongPassword(422, "bad_value", "The old password is wrong.")
    stored = await within.passwords.hashed(request.new)
    async with within.pool.connection() as conn:
        shown = found.password if found else ""
        if not await users.set_password(conn, caller.name, stored, shown=shown, kept=caller.token_id, by=caller.name):
            raise Refused(409, "changed", "Somebody else has changed the password at this moment.", hint="Log in with that one.")
    return GivenPassword(name=caller.name, password=None)


async def _password(within: ApiContext, chosen: str | None) -> tuple[str | None, str]:
    """One that is made where none was chosen, and what is stored."""
    made = new_password() if chosen is None else None
    return made, await within.passwords.hashed(made or chosen or "")


def check_rights(role: Role, scope: PersonScope | None) -> None:
    """Raises :class:`BadValue`."""
    if (flaw := flaw_of_rights(role, scope)) is not None:
        raise BadValue(f"{flaw[0].upper()}{flaw[1:]}.")


async def _found(conn: AsyncConn, name: str) -> User:
    """Raises :class:`Refused`."""
    for row in await users.list_users(conn, name=name, limit=1):
        return User.model_validate(row)
    raise Refused(404, "not_found", f"There is no user {name!r}.", hint="To see all, type: evenflow users list")
