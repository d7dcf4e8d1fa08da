"""The options of an executor that makes pods, each checked when it is set.

``on_CAUSE`` sets the policy for a cause: ``fail``, ``elsewhere`` or ``wait``, with the time in which it may pass by itself, as in
``fail
after 5m``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from evenflow.core.pods.ends import RULES, Cause, CauseRule, Policy
from evenflow.core.selection.pool_policy import parse_time
from evenflow.errors import BadValue

REQUESTS_PER_S = 100.0  # of one client to a cluster: a tenth of what its API server can serve by default
EVENFLOW, AIRFLOW = "evenflow", "airflow"  # what a pod runs: a worker of Evenflow's, or a task of Airflow's by its SDK alone
KEPT_S = 86_400.0  # the longest time that a failed pod is kept for people: it counts in quotas of objects
MOST_REQUESTS_PER_S = 2_000  # an API server answers no more of them, and has other clients
_POLICY = re.compile(r"(?P<policy>fail|elsewhere|wait)(?: after (?P<time>\S+))?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """An empty text leaves the choice to the template, or to the launcher's cluster."""

    template: str = ""  # a file, where launchers run
    namespace: str = ""
    image: str = ""
    service_account: str = ""
    runs: str = EVENFLOW  # or AIRFLOW
    keep_failed_s: float = 0.0
    requests_per_s: float = REQUESTS_PER_S
    rules: Mapping[Cause, CauseRule]


def read_options(options: Mapping[str, Any]) -> PodOptions:
    """Reads checked options."""
    rules = dict(RULES)
    for cause in Cause:
        if (text := options.get(f"on_{cause}")) is not None:
            rules[cause] = _rule(cause, str(text))
    return PodOptions(
        template=str(options.get("template", "")),
        namespace=str(options.get("namespace", "")),
        image=str(options.get("image", "")),
        service_account=str(options.get("service_account", "")),
        runs=str(options.get("runs", EVENFLOW)),
        keep_failed_s=float(parse_time(str(options.get("keep_failed", "0"))) or 0),
        requests_per_s=float(options.get("requests_per_s", REQUESTS_PER_S)),
        rules=MappingProxyType(rules),
    )


def _rule(cause: Cause, text: str) -> CauseRule:
    found = _POLICY.fullmatch(text)
    if found is None:
        raise BadValue(
            f"on_{cause} is fail, elsewhere or wait, and may say after how long, such as 'fail after 5m'; it is {text!r}."
        )
    given = parse_time(found["time"]) if found["time"] else RULES[cause].patience_s
    if given is None:
        raise BadValue(f"on_{cause} says {text!r}: a time is such as 90, 5m or 2h.")
    return CauseRule(Policy(found["policy"]), float(given), RULES[cause].meaning)


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_word(name: str, value: Any) -> None:
    text = str(value)
    if not text or not text.isprintable() or len(text) > 500:
        raise BadValue(f"{name} is a line of at most 500 characters, not {value!r:.100}.")


def _check_name(name: str, value: Any) -> None:
    if not _NAME.fullmatch(str(value)) or len(str(value)) > 63:
        raise BadValue(f"{name} is a name of Kubernetes (lower case, digits and '-', at most 63 characters), not {value!r:.100}.")


def _check_kept(name: str, value: Any) -> None:
    seconds = parse_time(str(value))
    if seconds is None or seconds > KEPT_S:
        raise BadValue(f"{name} is a time such as 10m, up to {KEPT_S / 3600:g}h, not {value!r:.100}.")


def _check_rate(name: str, value: Any) -> None:
    if not str(value).isdecimal() or not 1 <= int(value) <= MOST_REQUESTS_PER_S:
        raise BadValue(f"{name} is a number from 1 to {MOST_REQUESTS_PER_S:,}, not {value!r:.100}.")


def _check_runs(name: str, value: Any) -> None:
    if value not in (EVENFLOW, AIRFLOW):
        raise BadValue(f"{name} is {EVENFLOW} or {AIRFLOW}, by what the image has, not {value!r:.100}.")


def _check_policy(name: str, value: Any) -> None:
    _rule(Cause(name.removeprefix("on_")), str(value))


CHECKS: Mapping[str, Callable[[str, Any], None]] = MappingProxyType(
    {
        "template": _check_word,
        "namespace": _check_name,
        "image": _check_word,
        "service_account": _check_name,
        "runs": _check_runs,
        "keep_failed": _check_kept,
        "requests_per_s": _check_rate,
        **{f"on_{cause}": _check_policy for cause in Cause},
    }
)
