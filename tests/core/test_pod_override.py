"""What an author may say of pods, and how it is laid over a template (R-EX1, R-SE2)."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.pods.options import CHECKS, read_options
from evenflow.core.pods.override import PodOverride, merged, trespass
from evenflow.errors import BadValue

BOUND = PodOverride(2_000)


def of_try(**more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "try", **more}]}}


def test_lists_of_things_with_names_are_merged_by_these() -> None:
    """Neither side is changed; None takes away; other lists are replaced."""
    template = {
        "metadata": {"labels": {"a": "1"}},
        "spec": {
            "nodeSelector": {"disk": "hdd", "zone": "b"},
            "tolerations": [{"key": "old"}],
            "containers": [{"name": "try", "image": "i:1", "env": [{"name": "A", "value": "1"}]}, {"name": "side", "image": "s"}],
        },
    }
    override = {
        "metadata": {"labels": {"b": "2"}},
        "spec": {
            "nodeSelector": {"disk": "ssd", "zone": None},
            "tolerations": [{"key": "new"}],
            "containers": [{"name": "try", "image": "i:2", "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }
    found = merged(template, override)
    assert found["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert found["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert found["spec"]["tolerations"] == [{"key": "new"}]
    assert [each["name"] for each in found["spec"]["containers"]] == ["try", "side"]
    assert found["spec"]["containers"][0] == {
        "name": "try",
        "image": "i:2",
        "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
    }
    assert found["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert template["spec"]["nodeSelector"] == {"disk": "hdd", "zone": "b"}  # type: ignore[index]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"metadata": {"annotations": {"team": "a"}}},
        {"spec": {"priorityClassName": "high", "tolerations": [{"key": "gpu"}]}},
        of_try(image="mine:2", resources={"limits": {"nvidia.com/gpu": "1"}}),
        of_try(env=[{"name": "EVENFLOW_VAR_REGION", "value": "eu"}]),
        {"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}},
        {"spec": {"initContainers": [{"name": "fetch", "image": "busybox", "command": ["true"]}]}},
        {"spec": {"initContainers": None, "volumes": None, "terminationGracePeriodSeconds": None}},
        of_try(volumeMounts=None, resources=None, env=None),
        of_try(ports=[{"containerPort": 80, "hostPort": 0}], readinessProbe={"httpGet": {"path": "/", "port": 80}}),
    ],
)
def test_what_is_harmless_is_taken(value: Any) -> None:
    assert BOUND.flaw(value) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "is no dict such as"),
        ({"status": {}}, "has 'status'"),
        ({"spec": []}, "has a spec that is no dict"),
        ({"metadata": {"name": "mine"}}, "has 'name' in its metadata"),
        ({"metadata": {"labels": {"a": 1}}}, "no dict from strings to strings"),
        ({"metadata": {"labels": {"evenflow/epoch": "7"}}}, "Evenflow's own"),
        ({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/try": "unconfined"}}}, "only the template"),
        ({"metadata": {"annotations": {"iam.amazonaws.com/role": "admin"}}}, "only the template"),
        ({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "management"}}}, "only the template"),
        ({"spec": {"serviceAccountName": "admin"}}, "only the template"),
        ({"spec": {"automountServiceAccountToken": True}}, "only the template"),
        ({"spec": {"hostNetwork": True}}, "only the template"),
        ({"spec": {"hostPID": True}}, "only the template"),
        ({"spec": {"securityContext": {"runAsUser": 0}}}, "only the template"),
        ({"spec": {"nodeName": "n1"}}, "only the template"),
        (of_try(securityContext={"privileged": True}), "only the template"),
        ({"spec": {"initContainers": [{"name": "x", "securityContext": {}}]}}, "only the template"),
        ({"spec": {"containers": [{"image": "x"}]}}, "each with its name (that of the task is 'try')"),
        ({"spec": {"runtimeClassName": "bare"}}, "only the template"),
        ({"spec": {"containers": None}}, "has no containers"),
        ({"spec": {"terminationGracePeriodSeconds": "soon"}}, "no whole number of seconds: 'soon'"),
        (of_try(volumeMounts=[{"name": "v"}]), "each with its mountPath"),
        (of_try(volumeMounts="v"), "each with its mountPath"),
        (of_try(resources="4Gi"), "no dict such as"),
        (of_try(resources={"limits": "4Gi"}), "no dict such as"),
        (of_try(ports=[{"containerPort": 80, "hostPort": 80}]), "a port of its node in container 'try'"),
        (of_try(ports=[{"containerPort": 80, "hostIP": "10.0.0.1"}]), "a port of its node in container 'try'"),
        (of_try(livenessProbe={"httpGet": {"host": "10.0.0.1", "port": 10255}}), "livenessProbe in container 'try' that asks"),
        (of_try(readinessProbe={"tcpSocket": {"host": "10.0.0.1", "port": 1}}), "readinessProbe in container 'try' that asks"),
        (
            {"spec": {"containers": [{"name": "x", "lifecycle": {"preStop": {"httpGet": {"host": "10.0.0.1", "port": 1}}}}]}},
            "lifecycle in container 'x' that asks",
        ),
        (of_try(env=5), "no list of dicts"),
        (of_try(command=["sh"]), "what runs there is Evenflow's"),
        (of_try(args=["sh"]), "what runs there is Evenflow's"),
        (of_try(env=[{"name": "EVENFLOW_API_URL", "value": "http://evil"}]), "settings of Evenflow are the template's"),
        (of_try(env=["A=1"]), "no dict with a name"),
        (of_try(env=[{"name": "T", "valueFrom": {"secretKeyRef": {"name": "evenflow-d-t-1", "key": "token"}}}]), "Evenflow's own"),
        (of_try(envFrom=[{"secretRef": {"name": "evenflow-d-t-1"}}]), "Evenflow's own"),
        ({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "evenflow-d-t-1"}}]}}, "Evenflow's own"),
        (
            {"spec": {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "evenflow-d-t-1"}}]}}]}},
            "Evenflow's own",
        ),
        ({"spec": {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]}}, "token of a service"),
        ({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}, "kind 'hostPath'"),
        ({"metadata": {"annotations": {"a": "x" * 3_000}}}, "bytes of JSON (limit 2,000)"),
        ({"metadata": {"annotations": {"a": float("nan")}}}, "no number of JSON"),
    ],
)
def test_what_would_give_rights_or_make_no_pod_is_refused(value: Any, words: str) -> None:
    """R-SE2: an author of a DAG gives no rights: no other account, host, user, token of another try."""
    assert words in (BOUND.flaw(value) or "")


TEMPLATE: dict[str, Any] = {
    "spec": {
        "initContainers": [{"name": "sysctl", "image": "s", "securityContext": {"privileged": True}}],
        "containers": [
            {
                "name": "try",
                "volumeMounts": [{"name": "host", "mountPath": "/host", "readOnly": True}, {"name": "data", "mountPath": "/data"}],
            },
            {"name": "mesh", "image": "m"},
        ],
        "volumes": [
            {"name": "host", "hostPath": {"path": "/"}},
            {"name": "account", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        ],
    }
}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({"spec": {"initContainers": [{"name": "sysctl", "command": ["sh"]}]}}, "changes the container 'sysctl'"),
        ({"spec": {"containers": [{"name": "mesh", "image": "mine"}]}}, "changes the container 'mesh'"),
        ({"spec": {"containers": [{"name": "sysctl", "image": "mine"}]}}, "changes the container 'sysctl'"),
        (of_try(volumeMounts=[{"name": "account", "mountPath": "/a"}]), "mounts at '/a' what only"),
        (of_try(volumeMounts=[{"mountPath": "/host", "readOnly": False}]), "mounts at '/host' what only"),
        ({"spec": {"initContainers": [{"name": "x", "volumeMounts": [{"name": "host", "mountPath": "/h"}]}]}}, "mounts at '/h'"),
    ],
)
def test_what_a_template_has_rights_for_is_not_an_authors(override: dict[str, Any], words: str) -> None:
    """R-SE2: a privileged container of a template runs what the template says, and its volumes of the node go where it says."""
    assert BOUND.flaw(override) is None, "of a template nothing is known when a DAG file is loaded"
    assert words in (trespass(TEMPLATE, override) or "")


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_others_know_a_pod_of_tries_by_what_its_template_says_of_it(kind: str) -> None:
    """R-SE1: with the label of the API a pod would be behind its Service, with that of a scheduler it would reach the database."""
    template = {"metadata": {kind: {"app.kubernetes.io/component": "try"}}}
    override = {"metadata": {kind: {"app.kubernetes.io/component": "api"}}}
    assert BOUND.flaw(override) is None
    assert f"changes 'app.kubernetes.io/component' of the {kind}" in (trespass(template, override) or "")
    assert trespass(template, {"metadata": {kind: {"team": "sales"}}}) is None


SECRET_ENV = of_try(env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}}])


@pytest.mark.parametrize(
    "override",
    [
        SECRET_ENV,
        of_try(envFrom=[{"secretRef": {"name": "db"}}]),
        {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]}},
        {"spec": {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "db"}}]}}]}},
        {"spec": {"initContainers": [{"name": "x", "envFrom": [{"secretRef": {"name": "db"}}]}]}},
    ],
)
def test_a_template_may_say_which_secrets_a_task_may_name(override: dict[str, Any]) -> None:
    """R-SE1: where the secrets of services are in the namespace of pods, no author gets the database by naming its secret."""
    assert BOUND.flaw(override) is None
    assert "names the secret 'db', which the template" in (trespass(secrets(""), override) or "")
    assert "names the secret 'db', which the template" in (trespass(secrets("s3-*,warehouse"), override) or "")
    assert [trespass(template, override) for template in (secrets("s3-*, d?"), {})] == [None, None]


def secrets(allowed: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"evenflow/secrets": allowed}}, "spec": {}}


@pytest.mark.parametrize(
    "override",
    [
        {"spec": {"volumes": [{"name": "ca", "secret": {"items": None}}]}},
        {"spec": {"volumes": [{"name": "ca", "secret": {"secretName": "", "items": [{"key": "tls.key", "path": "ca.crt"}]}}]}},
        of_try(env=[{"name": "WAREHOUSE", "valueFrom": {"secretKeyRef": {"key": "password"}}}]),
    ],
)
def test_no_more_is_shown_of_a_secret_than_its_template_says(override: dict[str, Any]) -> None:
    """R-SE1: laid over a template that shows one key of a secret, such as an authority's certificate, this would show others."""
    assert "names keys of a secret and not the secret" in (BOUND.flaw(override) or "")


def test_a_template_may_say_which_annotations_a_task_may_have() -> None:
    """R-SE2: what an annotation grants is known to those of the cluster, not to Evenflow."""
    template: dict[str, Any] = {"metadata": {"annotations": {"evenflow/annotations": "prometheus.io/*, team"}}}
    for name in ("prometheus.io/scrape", "team"):
        assert trespass(template, {"metadata": {"annotations": {name: "x"}}}) is None
    words = trespass(template, {"metadata": {"annotations": {"mesh.example.com/egress": "all"}}})
    assert words == "has the annotation 'mesh.example.com/egress', which the template of the executor does not let tasks have"
    assert trespass({}, {"metadata": {"annotations": {"mesh.example.com/egress": "all"}}}) is None


@pytest.mark.parametrize(
    ("annotation", "mine", "other", "words"),
    [
        ("claims", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "team-a"}}]},
         {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "pgdata"}}]}, "mounts the claim 'pgdata'"),
        ("priority-classes", {"priorityClassName": "team-low"}, {"priorityClassName": "system-node-critical"},
         "has the priority class 'system-node-critical'"),
    ],
)  # fmt: skip
def test_a_template_may_say_which_claims_and_priorities_a_task_may_have(
    annotation: str, mine: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    """R-SE1, R-SE2: the disk of a database may be in the namespace of pods, and a high priority takes the places of others."""
    template: dict[str, Any] = {"metadata": {"annotations": {f"evenflow/{annotation}": "team-*"}}, "spec": {}}
    assert [BOUND.flaw({"spec": spec}) for spec in (mine, other)] == [None, None]
    assert trespass(template, {"spec": mine}) is None
    assert trespass(template, {"spec": other}) == f"{words}, which the template of the executor does not let tasks have"
    assert trespass({}, {"spec": other}) is None


def test_a_volume_names_its_claim() -> None:
    for claim in ({}, {"claimName": ""}, "data"):
        said = BOUND.flaw({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": claim}]}}) or ""
        assert "names none; write {'claimName': 'NAME'}" in said
    assert "no string" in (BOUND.flaw({"spec": {"priorityClassName": 3}}) or "")


def test_what_a_template_has_for_tasks_may_be_used() -> None:
    mine = {"name": "side", "image": "s", "volumeMounts": [{"name": "data", "mountPath": "/more"}]}
    assert trespass(TEMPLATE, {"spec": {"containers": [{"name": "try", "image": "mine"}, mine]}}) is None
    assert trespass(TEMPLATE, of_try(volumeMounts=[{"mountPath": "/data", "readOnly": True}])) is None
    assert trespass({}, of_try(volumeMounts=[{"name": "v", "mountPath": "/v"}])) is None


def test_options_of_an_executor_are_read_with_their_policies() -> None:
    options = {"image": "i:1", "keep_failed": "10m", "on_image": "elsewhere after 5m", "on_deleted": "fail", "requests_per_s": "20"}
    for name, value in options.items():
        CHECKS[name](name, value)
    read = read_options(options)
    rules = {str(cause): (str(rule.policy), rule.patience_s) for cause, rule in read.rules.items()}
    assert (read.image, read.keep_failed_s, read.requests_per_s) == ("i:1", 600.0, 20.0)
    assert (rules["image"], rules["deleted"], rules["evicted"]) == (("elsewhere", 300.0), ("fail", 0.0), ("elsewhere", 0.0))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("on_image", "retry", "is fail, elsewhere or wait"),
        ("on_image", "fail after soon", "a time is such as"),
        ("namespace", "Team A", "a name of Kubernetes"),
        ("image", "", "a line of at most"),
        ("keep_failed", "9d", "up to 24h"),
        ("requests_per_s", "0", "from 1 to 2,000"),
    ],
)
def test_a_wrong_option_says_what_to_type(name: str, value: str, words: str) -> None:
    with pytest.raises(BadValue, match=words):
        CHECKS[name](name, value)
