"""What an environment has to have: this Evenflow, and a Task SDK whose dates of the Execution API are known here."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from evenflow.errors import EvenflowError
from evenflow.forking.frames import FrameHeader
from evenflow.forking.template import NotPrepared

SDK = "apache-airflow-task-sdk"
KNOWN = ("1.3",)  # of the SDK: later ones may ask what is not answered here, and earlier ones ask in other words


class WrongEnvironment(EvenflowError):
    """The packages of an environment are not those that it needs."""


def check_installed(evenflow: str) -> None:
    """``evenflow`` is the version of the service that asks. Raises :class:`WrongEnvironment`, which says what to type."""
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
    """As a template is told which service it is of. Raises :class:`NotPrepared`."""
    try:
        check_installed(config["evenflow"])
    except WrongEnvironment as error:
        raise NotPrepared(str(error), str(error)) from error


def configure() -> None:
    """Before anything imports Airflow: its database is never used. Where nobody says which home of Airflow's is meant, with whose
    configuration and plugins, it is an empty one beside this code. What stands in a home is run by all that is loaded after it, so
    it may lie where tasks can write no more than where Airflow itself lies; what Airflow writes there goes to the user's cache.
    """
    if "AIRFLOW_HOME" not in os.environ:
        os.environ["AIRFLOW_HOME"] = str(files("evenflow.airflow") / "empty_home")
        logs = os.path.join(os.path.expanduser("~"), ".cache", "evenflow", "airflow", "logs")
        os.environ.setdefault("AIRFLOW__LOGGING__BASE_LOG_FOLDER", logs)
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    os.environ.setdefault("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "sqlite://")  # in memory, and nobody connects
