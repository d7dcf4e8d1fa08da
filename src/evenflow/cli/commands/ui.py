"""``evenflow ui``: the address of the web UI."""

from __future__ import annotations

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.remote import remote


@replies
async def ui() -> Reply:
    """Print the address of the web UI. It logs in its first visitor as you, within ten minutes.

    The session lasts for twelve hours, and no longer than the token of this command.
    """
    async with remote() as api:
        made = await api.make_login_code()
    page = login_page(api.url, made.code)
    return Reply({"url": page, "expires_at": made.expires_at}, page)


def login_page(api_url: str, code: str) -> str:
    """Returns the address. Browsers send the part behind # to no server, so no log contains the code."""
    return f"{api_url.rstrip('/')}/login#{code}"
