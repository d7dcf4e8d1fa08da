"""The needs of an environment: this Evenflow, and a Task SDK with a known date of the Execution API."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from evenflow.errors import EvenflowError
from evenflow.forking.frames import FrameHeader
from evenflow.forking.template import NotPrepared

SDK = "apache-airflow-task-sdk"
KNOWN = ("1.3",)  # of the SDK: later ones may send unknown requests, and earlier ones use another form


class WrongEnvironment(EvenflowError):
    """The packages of an environment are not those that it needs."""


def check_installed(evenflow: str) -> None:
    """``evenflow`` is the version of the calling service. Raises :class:`WrongEnvironment`, which says what to type."""
    here = version("evenflow")
    if here != evenflow:
        raise WrongEnvironment(
            f"The environment has Evenflow {here}, and the service that uses it is {evenflow}. Type there: "
            f"pip install 'evenflow[airflow]=={evenflow}'"
        )
    try:
        sdk = version(SDK)
    except PackageNotFoundError:
        raise WrongEnvironment("The environment has no Airflow. Type there: pip install 'evenflow[airflow]'") from None
    if not sdk.startswith(tuple(f"{known}." for known in KNOWN)):
        raise WrongEnvironment(
            f"The environment has {SDK} {sdk}; Evenflow {evenflow} knows {', '.join(f'{known}.*' for known in KNOWN)}. Type there: "
            f"pip install '{SDK}~={KNOWN[-1]}.0'"
        )


def check_template(config: FrameHeader) -> None:
    """Checks the version of the template's service. Raises :class:`NotPrepared`."""
    try:
        check_installed(config["evenflow"])
    except WrongEnvironment as error:
        raise NotPrepared(str(error), str(error)) from error


def configure() -> None:
    """Call this before anything imports Airflow: its database is never used. Unless a home of Airflow is set, with its
    configuration and plugins, it is an empty one beside this code. All code that is loaded later runs what is in the home, so it is
    only where tasks can write no more than where Airflow itself is; Airflow writes into the user's cache instead.
    """
    if "AIRFLOW_HOME" not in os.environ:
        os.environ["AIRFLOW_HOME"] = str(files("evenflow.airflow") / "empty_home")
        logs = os.path.join(os.path.expanduser("~"), ".cache", "evenflow", "airflow", "logs")
        os.environ.setdefault("AIRFLOW__LOGGING__BASE_LOG_FOLDER", logs)
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    os.environ.setdefault("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite://")  # in memory, and never connected to
