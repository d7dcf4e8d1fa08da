"""The program ``git``, called so that it never prompts, never hangs, and never shows a password."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from evenflow.errors import EvenflowError
from evenflow.processor import limits
from evenflow.sdk.secrets.connections import get_connection

_SHOWN = 500  # characters of git's output: its last lines name the reason


class GitFailed(EvenflowError):
    """Git is not installed, or refused."""


# The helper reads the environment of this one process, so a password is in no argument, file or log.
_CREDENTIALS = r'!f() { printf "username=%s\npassword=%s\n" "$EVENFLOW_GIT_LOGIN" "$EVENFLOW_GIT_PASSWORD"; }; f'


class Git:
    """The host of ``url``, and no host to which it redirects, gets the login and password of ``connection``. Each call reads the
    connection anew, because it may have changed.
    """

    def __init__(self, url: str, connection: str | None) -> None:
        remote = urlsplit(url)
        self._remote = f"{remote.scheme}://{remote.netloc.rpartition('@')[2]}"
        self._connection = connection

    async def run(self, *arguments: str, **environment: str) -> str:
        """Returns the output of ``git ARGUMENTS``. Raises :class:`GitFailed`, or :class:`ConnectionNotFound`."""
        program = shutil.which("git")
        if program is None:
            raise GitFailed("The program git is not installed on the processor's host. Install it, e.g.: apt install git")
        credentials = self._credentials()
        command = next(argument for argument in arguments if not argument.startswith("-"))
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env={**_environment(), **credentials, **environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # it ends as a group with its helpers (ssh, git-remote-https)
        )
        try:
            async with asyncio.timeout(limits.GIT_TIMEOUT):
                out, said = await process.communicate()
        except TimeoutError:
            raise GitFailed(f"git {command} was not done after {limits.GIT_TIMEOUT:g} s.") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            words = _without_secrets(said.decode(errors="replace"), credentials).strip()
            raise GitFailed(f"git {command} failed: {words[-_SHOWN:] or f'exit code {process.returncode}'}")
        return out.decode(errors="replace").strip()

    def _credentials(self) -> dict[str, str]:
        if self._connection is None:
            return {}
        connection = get_connection(self._connection)
        return {
            "EVENFLOW_GIT_LOGIN": connection.login or "",
            "EVENFLOW_GIT_PASSWORD": connection.password or "",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"credential.{self._remote}.helper",
            "GIT_CONFIG_VALUE_0": _CREDENTIALS,
        }


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_CONFIG", "EVENFLOW_"))}
    return {
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10",
        **inherited,
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # not ext, which runs a command from the URL
        "GIT_CONFIG_GLOBAL": os.environ.get(
            "GIT_CONFIG_GLOBAL", os.devnull
        ),  # a person's settings are not for others' repositories
        "GIT_LFS_SKIP_SMUDGE": "1",  # a repository's .lfsconfig may name any host
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_HTTP_LOW_SPEED_LIMIT": "1000",  # bytes a second; a slower connection for half a minute hangs
        "GIT_HTTP_LOW_SPEED_TIME": "30",
    }


def _without_secrets(text: str, credentials: Mapping[str, str]) -> str:
    password = credentials.get("EVENFLOW_GIT_PASSWORD")
    for secret in filter(None, (password, quote(password or "", safe=""))):
        text = text.replace(secret, "***")
    return text
