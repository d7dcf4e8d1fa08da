"""The Helm chart: installed by Helm itself into an API server that keeps what it is sent, and looked at there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenflow.core.pods.override import trespass
from evenflow.runtime.secret_files import secret_fields
from evenflow.runtime.settings import PREFIX, Settings
from tests.house.project import ROOT
from tests.publishing.kubernetes_shapes import unknown_fields
from tests.publishing.recording_api import Object, RecordingApi, recording_api

CHART = ROOT / "deploy" / "helm" / "evenflow"
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

MINIMAL = {"database": {"existingSecret": "pg"}, "plaintext": True, "storage": {"existingClaim": "shared"}}
WITH_TLS = {
    "database": {"url": "postgresql://e:open-sesame@db/e"},
    "tls": {"existingSecret": "cert"},
    "storage": {"url": "s3://b/evenflow"},
}
GPU = {"queues": ["gpu"], "slots": 2, "resources": {"limits": {"memory": "32Gi", "nvidia.com/gpu": "1"}}}
VALUES: dict[str, dict[str, Any]] = {
    "minimal": MINIMAL,
    "high availability": {
        **WITH_TLS,
        **{part: {"replicas": 3} for part in ("schedulers", "api", "processors", "triggerers")},
        "networkPolicy": {"enabled": True, "database": {"cidrs": ["10.0.0.0/24"]}, "scrapers": {"app": "prometheus"}},
        "serviceMonitor": {"enabled": True},
        "config": '[bundles.etl]\ngit = "https://git.example.org/etl.git"\n',
    },
    "executor of kubernetes": {
        **MINIMAL,
        "launchers": {"replicas": 2, "podTemplate": {"spec": {"nodeSelector": {"pool": "tries"}}}},
    },
    "autoscaler": {**MINIMAL, "autoscalers": {"replicas": 2}, "workers": {"default": {"autoscaled": True}, "gpu": GPU}},
    "secrets of others": {
        **MINIMAL,
        **{which: {"existingSecret": which} for which in ("keys", "tokens")},
        "launchers": {"replicas": 1, "broker": {"existingSecret": "celery"}},
        "image": {"repository": "registry.internal/evenflow", "digest": "sha256:" + "0" * 64, "pullSecrets": [{"name": "pull"}]},
    },
}
WORK = ("processor", "worker", "triggerer")
FLEETS = {**MINIMAL, "workers": {"gpu": GPU}}
READS_SECRETS = {"get", "list", "watch", "*"}

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("chart")]


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.helm", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def install(api: RecordingApi, folder: Path, *values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "kubeconfig").write_text(api.kubeconfig)
    files = [folder / f"values-{number}.json" for number in range(len(values))]
    for file, given in zip(files, values, strict=True):
        file.write_text(json.dumps(given))
    return helm("install", "prod", CHART, folder / "kubeconfig", *files)


@pytest.fixture(scope="module", params=VALUES)
def objects(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """All that an installation with these values makes, in order."""
    with recording_api() as api:
        done = install(api, tmp_path_factory.mktemp("values"), VALUES[request.param])
        assert done.returncode == 0, done.stdout + done.stderr
        return api.made


@pytest.fixture
def pods(objects: list[Object]) -> dict[str, Object]:
    """Specs of the pods that come of it, by the name of what makes them."""
    return {name_of(obj): spec for obj in objects if (spec := pod_of(obj))}


def name_of(obj: Object) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def pod_of(obj: Object) -> Object | None:
    match obj["kind"]:
        case "Deployment" | "Job":
            return obj["spec"]["template"]["spec"]
        case "CronJob":
            return obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        case "ConfigMap" if "pod.yaml" in obj["data"]:
            return yaml.safe_load(obj["data"]["pod.yaml"])["spec"]
    return None


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [obj for obj in objects if obj["kind"] == kind]


def environment(container: Object) -> dict[str, Object]:
    return {entry["name"]: entry for entry in container["env"]}


def test_the_shapes_are_those_of_kubernetes(objects: list[Object]) -> None:
    """No field that an API server would drop or refuse."""
    assert {name_of(obj): wrong for obj in objects if (wrong := unknown_fields(obj))} == {}


def test_nothing_may_more_than_it_must(pods: dict[str, Object]) -> None:
    for name, pod in pods.items():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not pod["enableServiceLinks"], name
        for container in containers(pod):
            security = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["securityContext"] == security, name
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name
            assert not container["image"].endswith(":latest"), name
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["volumes"]}, name


def test_each_service_is_probed_and_has_the_time_that_its_drain_may_take(objects: list[Object]) -> None:
    for deployment in of_kind(objects, "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        paths = {probe: container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")}
        assert paths == {"startup": "/health/live", "liveness": "/health/live", "readiness": "/health/ready"}
        (port,) = container["ports"]
        assert {container[f"{probe}Probe"]["httpGet"]["port"] for probe in paths} == {port["name"]}
        drain = int(environment(container)["EVENFLOW_DRAIN_TIMEOUT"]["value"])
        assert pod["terminationGracePeriodSeconds"] == drain + 30
        assert len(pod["topologySpreadConstraints"]) == 2


def test_no_secret_is_in_a_manifest_and_what_is_told_are_settings(objects: list[Object], pods: dict[str, Object]) -> None:
    """But the database's URL, where the values have it: it is in a Secret, and there alone."""
    secret = {PREFIX + field.upper() for field in secret_fields(Settings)}
    known = {PREFIX + field.upper() for field in Settings.model_fields} | {"NAMESPACE"}
    for name, pod in pods.items():
        for container in containers(pod):
            given = environment(container)
            assert len(given) == len(container["env"]), f"{name}: a variable is there twice"
            assert given.keys() - known == set(), name
            assert {
                variable for variable in given.keys() & secret if "secretKeyRef" not in given[variable].get("valueFrom", {})
            } == set()
    assert [name_of(obj) for obj in objects if "open-sesame" in json.dumps(obj)] in ([], ["Secret/prod-evenflow-database"])


def test_what_runs_code_of_users_has_a_token_and_neither_database_nor_keys(pods: dict[str, Object]) -> None:
    for name, pod in pods.items():
        kind = pod["containers"][0]["name"]
        if kind not in (*WORK, "try"):
            continue
        given = environment(pod["containers"][0])
        assert given.keys() & {"EVENFLOW_DATABASE_URL", "EVENFLOW_SECRET_KEYS", "EVENFLOW_TLS_KEY"} == set(), name
        assert not pod["automountServiceAccountToken"], name
        if kind in WORK:
            assert given["EVENFLOW_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == kind
        for volume in pod["volumes"]:
            assert [item["key"] for item in volume.get("secret", {}).get("items", [{"key": "ca.crt"}])] == ["ca.crt"], (
                "no key of TLS"
            )


def test_no_task_gets_the_secrets_of_the_release(objects: list[Object], pods: dict[str, Object]) -> None:
    """R-SE1: they are in the namespace of pods of tries, whose authors may name secrets there."""
    named = {
        entry["valueFrom"]["secretKeyRef"]["name"]
        for pod in pods.values()
        for container in containers(pod)
        for entry in container["env"]
        if "secretKeyRef" in entry.get("valueFrom", {})
    }
    for obj in of_kind(objects, "ConfigMap"):
        if "pod.yaml" in obj["data"]:
            template = yaml.safe_load(obj["data"]["pod.yaml"])
            for label in template["metadata"]["labels"]:
                assert "the template's alone" in (trespass(template, {"metadata": {"labels": {label: "api"}}}) or ""), label
            for name in named | {"tls"}:
                override = {"spec": {"containers": [{"name": "try", "envFrom": [{"secretRef": {"name": name}}]}]}}
                assert f"names the secret {name!r}" in (trespass(template, override) or ""), name


def test_a_setting_that_is_a_large_number_is_told_as_one(tmp_path: Path) -> None:
    """Helm reads it as 1e+06, which no setting takes."""
    with recording_api() as api:
        done = install(
            api, tmp_path, {**MINIMAL, "settings": {"LOG_LEVEL": "debug", "PARSE_MEMORY": 1048576, "PARSE_TIMEOUT": 2.5}}
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (processor,) = (obj for obj in api.made if name_of(obj) == "Deployment/prod-evenflow-processor")
    given = environment(pod_of(processor)["containers"][0])  # type: ignore[index]
    told = [given[f"EVENFLOW_{name}"]["value"] for name in ("LOG_LEVEL", "PARSE_MEMORY", "PARSE_TIMEOUT")]
    assert told == ["debug", "1048576", "2.5"]


def test_what_selects_selects_what_there_is(objects: list[Object]) -> None:
    made = {name_of(obj): obj["spec"]["template"]["metadata"]["labels"] for obj in of_kind(objects, "Deployment")}
    for deployment in of_kind(objects, "Deployment"):
        wanted = deployment["spec"]["selector"]["matchLabels"].items()
        assert [name for name, labels in made.items() if wanted <= labels.items()] == [name_of(deployment)]
    for obj in (*of_kind(objects, "PodDisruptionBudget"), *of_kind(objects, "Service")):
        wanted = obj["spec"]["selector"].get("matchLabels", obj["spec"]["selector"]).items()
        assert [name for name, labels in made.items() if wanted <= labels.items()] == [f"Deployment/{obj['metadata']['name']}"]


def test_what_there_is_more_than_once_is_not_disrupted_at_once(objects: list[Object]) -> None:
    """A budget for each that is replicated or scaled; none for a single one, which would keep its node from being drained."""
    several = {obj["metadata"]["name"] for obj in of_kind(objects, "Deployment") if obj["spec"].get("replicas", 2) > 1}
    budgets = {obj["metadata"]["name"]: obj["spec"]["maxUnavailable"] for obj in of_kind(objects, "PodDisruptionBudget")}
    assert budgets == dict.fromkeys(several, 1)


def test_accounts_may_do_what_they_must(objects: list[Object]) -> None:
    """No one reads secrets of others, no rule is for everything, and pods without an account have no token of one."""
    rules = {obj["metadata"]["name"]: obj["rules"] for obj in of_kind(objects, "Role")}
    for name, granted in rules.items():
        for rule in granted:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"], name
            if "secrets" in rule["resources"] and READS_SECRETS & set(rule["verbs"]):
                assert rule["resourceNames"], f"{name} reads named secrets alone"
    bound = {(subject["name"], obj["roleRef"]["name"]) for obj in of_kind(objects, "RoleBinding") for subject in obj["subjects"]}
    assert bound == {(name, name) for name in rules}
    accounts = {obj["metadata"]["name"] for obj in of_kind(objects, "ServiceAccount")}
    for obj in objects:
        if (pod := pod_of(obj)) and obj["kind"] != "ConfigMap":
            assert pod["serviceAccountName"] in accounts
            assert pod["automountServiceAccountToken"] == (pod["serviceAccountName"] in rules)


def test_the_schema_is_migrated_before_services_change(objects: list[Object]) -> None:
    """With what that needs: its account and the secret of the database are there before the job, and all else comes after it."""
    order = [name_of(obj) for obj in objects]
    job = next(obj for obj in objects if obj["kind"] == "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert [c["args"] for c in containers(pod_of(job) or {}) if c["name"] == "migrate"] == [["db", "migrate"]]
    assert all(order.index(name_of(job)) < number for number, obj in enumerate(objects) if obj["kind"] == "Deployment")
    needed = [f"{kind}/prod-evenflow-prepare" for kind in ("ServiceAccount", "Role", "RoleBinding", "ConfigMap")]
    assert all(order.index(name) < order.index(name_of(job)) for name in needed)


def test_an_autoscaled_fleet_has_no_number_of_helms(tmp_path: Path) -> None:
    """And the autoscaler may change the Deployments of workers, and no other."""
    with recording_api() as api:
        done = install(api, tmp_path, VALUES["autoscaler"], {**VALUES["autoscaler"], "settings": {"LOG_LEVEL": "debug"}})
        assert done.returncode == 0, done.stderr
        fleets = {obj["metadata"]["name"]: obj["spec"].get("replicas") for obj in of_kind(api.made, "Deployment")}
        assert (fleets["prod-evenflow-worker-default"], fleets["prod-evenflow-worker-gpu"]) == (None, 2)
        (role,) = (obj for obj in of_kind(api.made, "Role") if obj["metadata"]["name"] == "prod-evenflow-autoscaler")
        scaling = next(rule for rule in role["rules"] if rule["resources"] == ["deployments/scale"])
        assert scaling["resourceNames"] == ["prod-evenflow-worker-default", "prod-evenflow-worker-gpu"]
        assert len(of_kind(api.made, "Job")) == 2, "the upgrade migrates, too"


def test_a_fleet_of_ones_own_says_what_differs(tmp_path: Path) -> None:
    """What it leaves out is as that of the fleet that the chart has; the values say so."""
    with recording_api() as api:
        done = install(api, tmp_path, FLEETS)
        assert done.returncode == 0, done.stdout + done.stderr
        made = {each["metadata"]["name"]: each["spec"] for each in api.made if each["kind"] == "Deployment"}
    default, gpu = (made[f"prod-evenflow-worker-{fleet}"] for fleet in ("default", "gpu"))
    grace = "terminationGracePeriodSeconds"
    assert (gpu["replicas"], gpu["template"]["spec"][grace]) == (default["replicas"], default["template"]["spec"][grace])
    (container,) = gpu["template"]["spec"]["containers"]
    requests = DEFAULTS["workers"]["default"]["resources"]["requests"]
    assert container["resources"] == {"requests": requests, "limits": GPU["resources"]["limits"]}
    assert {"name": "EVENFLOW_SLOTS", "value": "2"} in container["env"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "Say where PostgreSQL is: database.existingSecret, or database.url."),
        ({**MINIMAL, "plaintext": False}, "name its secret in tls.existingSecret, or set plaintext: true"),
        ({**MINIMAL, "storage": {}}, "say where in storage.url, or storage.existingClaim"),
        ({**MINIMAL, "workers": {"default": {"autoscaled": True}}}, "workers.default is autoscaled, and no autoscaler runs"),
        ({**MINIMAL, "settings": {"TOKEN": "x"}}, "invalid propertyName 'TOKEN'"),
        ({**MINIMAL, "scheduler": {}}, "additional properties 'scheduler' not allowed"),
        ({**MINIMAL, "storage": {"url": "s3://key:secret@bucket"}}, "/storage/url"),
    ],
)
def test_values_that_are_not_right_are_refused_before_anything_is_made(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    with recording_api() as api:
        done = install(api, tmp_path, values)
        assert done.returncode != 0
        assert said in done.stderr
        assert api.made == []


@pytest.mark.parametrize("name", VALUES)
def test_helm_has_nothing_to_say_against_it(name: str, tmp_path: Path) -> None:
    """`helm lint`, with these values as the chart's own."""
    shutil.copytree(CHART, tmp_path / "evenflow")
    (tmp_path / "evenflow" / "values.yaml").write_text(yaml.safe_dump(merged(DEFAULTS, VALUES[name])))
    done = helm("lint", tmp_path / "evenflow")
    assert done.returncode == 0, done.stdout + done.stderr


def merged(there: Any, given: Any) -> Any:
    if not isinstance(there, dict) or not isinstance(given, dict):
        return given
    return {**there, **{key: merged(there.get(key), value) for key, value in given.items()}}


def test_its_version_is_that_of_evenflow() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert project is not None
    assert (chart["version"], chart["appVersion"]) == (project[1], project[1])
