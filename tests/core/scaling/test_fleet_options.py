"""What a fleet may be told of its target."""

from __future__ import annotations

import pytest

from evenflow.core.scaling.fleet_options import check_target
from evenflow.errors import BadValue


@pytest.mark.parametrize("name", ["..", "a/../b", "../../kube-system", "a?watch=1", "a\x00", "A", "-a", "a" * 254])
@pytest.mark.parametrize("option", ["deployment", "namespace"])
def test_what_gets_into_paths_of_a_cluster_is_a_name(option: str, name: str) -> None:
    """R-AS4: an autoscaler asks by it, with rights of its own."""
    with pytest.raises(BadValue, match=f"The option '{option}' of a target is a name as Kubernetes has them"):
        check_target("kubernetes", {"deployment": "workers", option: name})


def test_names_of_a_cluster_are_taken() -> None:
    check_target("kubernetes", {"deployment": "etl.workers-2", "namespace": "a", "worker": "celery@{pod}"})
    with pytest.raises(BadValue, match="at most"):
        check_target("kubernetes", {"deployment": "etl", "worker": "{pod}" * 100})
