"""The environment that user code sees."""

from __future__ import annotations

from collections.abc import Mapping

OURS = "EVENFLOW_"
FOLDERS = ("EVENFLOW_SECRETS_DIR", "EVENFLOW_VENV_DIR")  # that user code reads, and makes
FOR_USER_CODE = ("EVENFLOW_CONN_", "EVENFLOW_VAR_", *FOLDERS)


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without Evenflow's own settings, of which some are secret (token, database URL); connections and variables stay.

    What is to reach user code is listed, not what is to be kept from it, so that a new secret is safe from its first day.
    """
    return {k: v for k, v in environ.items() if not k.startswith(OURS) or k.startswith(FOR_USER_CODE)}


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` without any of our variables: a service that runs no user code needs nobody's connections."""
    return {k: v for k, v in environ.items() if not k.startswith(OURS)}
