"""Starting a driver for a try: where, with what, and so that nothing secret stands in arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evenflow.core.hosts import is_loopback
from evenflow.errors import BadArgument, SettingsError, SparkMasterAway
from evenflow.sdk.secrets.connections import Connection
from evenflow.sdk.secrets.masking import MIN_LENGTH, forms
from evenflow.spark import driver, runs, status
from evenflow.spark.class_data import use_archive
from evenflow.spark.java import find_java
from evenflow.spark.limits import MASTER_AGAIN, MASTER_RETURNS
from evenflow.spark.output import secret_values
from evenflow.spark.properties import write_properties
from evenflow.spark.rest import RestServer
from evenflow.spark.submitted import event_log
from evenflow.spark.target import target_of

REMOTE = ("k8s", "yarn")  # where spark-submit has the driver made elsewhere, and tells of it in its output

_NOTES = {
    "k8s": {
        "application_id": r"pod name: (\S+)",
        "final": r"phase: (Succeeded|Failed)",
        "exit_code": r"[Ee]xit code: (\d+)",
    },
    "yarn": {"application_id": r"(application_\d+_\d+)", "final": r"final status: (SUCCEEDED|FAILED|KILLED)"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What a task submits. ``application`` is a path, or a URL that Spark reads."""

    application: str
    name: str
    main_class: str | None = None
    arguments: Sequence[str] = ()
    py_files: Sequence[str] = ()
    jars: Sequence[str] = ()
    files: Sequence[str] = ()
    archives: Sequence[str] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriverPlace:
    """Where a driver goes. ``rest`` is the REST server of a master that runs it, None when this host does."""

    kind: str  # the connection's scheme
    master: str
    conf: Mapping[str, str]
    environ: Mapping[str, str]
    base: Path
    rest: str | None = None
    python: str | None = None
    spark_home: str | None = None


def place_of(conn: Connection, conf: Mapping[str, str]) -> DriverPlace:
    """Raises :class:`SettingsError`."""
    extra = conn.extra
    mode = extra.get("deploy_mode", "client")
    if mode not in ("client", "cluster"):
        raise SettingsError(f"Connection {conn.conn_id!r} says deploy_mode={mode!r}; write client or cluster.")
    given = {key: value for key, value in extra.items() if key.startswith("spark.")}
    shared = {"python": extra.get("python"), "spark_home": extra.get("spark_home")}
    if conn.scheme in REMOTE:
        master = "yarn" if conn.scheme == "yarn" else f"k8s://https://{conn.host}:{conn.port or 443}"
        environ = {"HADOOP_CONF_DIR": extra["hadoop_conf"]} if "hadoop_conf" in extra else {}
        all_conf = {"spark.submit.deployMode": "cluster", **given, **conf}
        return DriverPlace(conn.scheme, master, all_conf, environ, _base(conn, shared=False), **shared)
    target = target_of(conn, conf, cpus=os.cpu_count() or 1)
    if target.connect:
        raise SettingsError(
            f"Connection {conn.conn_id!r} is a Spark Connect server, which takes queries and no applications. Use @task.spark with "
            "it, or name another with conn_id=."
        )
    near = target.local or is_loopback(conn.host or "")
    rest = None
    if mode == "cluster":
        if target.local:
            raise SettingsError(f"Connection {conn.conn_id!r} is a local Spark, which runs no drivers. Leave out deploy_mode.")
        rest = extra.get("rest", f"http://{conn.host}:6066").rstrip("/")
    base = _base(conn, shared=rest is not None and not near)
    return DriverPlace(conn.scheme, target.url, target.conf, target.environ, base, rest, **shared)


def _base(conn: Connection, *, shared: bool) -> Path:
    if "evidence" in conn.extra:
        base = Path(conn.extra["evidence"])
        if not base.is_absolute():
            raise SettingsError(f"Connection {conn.conn_id!r} says evidence={base}; write the absolute path of a folder.")
        return base
    if shared:
        raise SettingsError(
            f"Connection {conn.conn_id!r} runs drivers on other hosts. Name a folder that these and all workers and triggerers "
            "share, where a driver says how it ended: ?evidence=/shared/evenflow-spark"
        )
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "evenflow" / "spark"


def prepare(folder: Path, place: DriverPlace, app: Application, key: str, dag_folder: Path | None) -> None:
    """Writes all that the driver needs, the order last. What is there of an earlier dispatch of the same try stays."""
    if (folder / driver.ORDER).exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    runs.sweep(place.base, time.time())
    ship = _Shipping(folder, dag_folder)
    application = ship.one(app.application)
    inside = app.main_class is None and _is_python(application)
    lists = {
        "spark.submit.pyFiles": ship.all(app.py_files),
        "spark.jars": ship.all(app.jars),
        "spark.files": ship.all(app.files),
        "spark.archives": ship.all(app.archives),
    }
    conf = {
        **(use_archive(find_java()) if place.rest is None and place.kind not in REMOTE else {}),
        **{key: value for key, value in lists.items() if value},
        **place.conf,
        "spark.master": place.master,
        "spark.app.name": app.name,
    }
    properties = folder / "evenflow.conf"
    properties.unlink(missing_ok=True)
    write_properties(properties, conf)
    shutil.copyfile(driver.__file__, folder / "driver.py")
    shutil.copyfile(status.__file__, folder / driver.STATUS_MODULE)
    shutil.copyfile(event_log.__file__, folder / driver.LOG_MODULE)
    resource = [str(folder / "driver.py"), driver.RUN_INSIDE, str(folder)] if inside else [application, *app.arguments]
    secrets = [value for value in secret_values(conf, app.env) if len(value) >= MIN_LENGTH]
    order: dict[str, Any] = {
        "key": key,
        "secrets": secrets,
        "hidden": sorted({form for secret in secrets for form in forms(secret)}, key=len, reverse=True),
        "remote": place.kind in REMOTE,
        "owned": place.rest is not None,
        "inside": inside and place.kind not in REMOTE,
        "logged": not inside and place.kind not in REMOTE and event_log.ENABLED not in conf,
        "arguments": [
            *("--properties-file", str(properties), "--load-spark-defaults"),
            *(("--class", app.main_class) if app.main_class else ()),
            *resource,
        ],
        "application": application.removeprefix("file://"),
        "application_arguments": list(app.arguments),
        "env": {**_environment(place), **app.env},
        "notes": _NOTES.get(place.kind, {}),
        "cancel": _cancel(place),
    }
    driver.write(folder / driver.ORDER, order)


def start_once(folder: Path, place: DriverPlace, app: Application) -> str | None:
    """Starts a driver, unless this try has one. Returns the id that the master gave it, None for a process of a host.

    If the answer is lost, a second driver is started: one of the two has the try, and the other ends.
    """
    submitted = driver.read(folder / runs.SUBMITTED)
    if submitted is not None:
        return submitted["submission_id"]  # type: ignore[no-any-return]
    if (folder / driver.CLAIM).exists():
        return None
    if place.rest is None:
        python = sys.executable
        with open(os.open(folder / "driver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            subprocess.Popen(
                [python, str(folder / "driver.py"), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=folder,
            )
        driver.write(folder / runs.SUBMITTED, {"submission_id": None})
        return None
    properties = {"spark.app.name": app.name, "spark.driver.memory": place.conf.get("spark.driver.memory", "1g")}
    if place.python is not None:
        properties["spark.pyspark.python"] = place.python
    if "spark.driver.cores" in place.conf:
        properties["spark.driver.cores"] = place.conf["spark.driver.cores"]
    submission_id = _order(RestServer(place.rest), folder, place.master, properties)
    driver.write(folder / runs.SUBMITTED, {"submission_id": submission_id})
    return submission_id


def _order(server: RestServer, folder: Path, master: str, properties: dict[str, str]) -> str:
    """Returns the id of the driver. A master that is away may be restarting, so it is asked for a while."""
    until, told = time.monotonic() + MASTER_RETURNS, False
    while True:
        try:
            return server.submit(folder / "driver.py", [str(folder)], master=master, properties=properties)
        except SparkMasterAway as error:
            if time.monotonic() > until:
                raise
            if not told:
                print(f"{error} The driver is ordered again, for {MASTER_RETURNS:g} s.", file=sys.stderr, flush=True)
                told = True
        time.sleep(MASTER_AGAIN)


def _environment(place: DriverPlace) -> dict[str, str]:
    environ = dict(place.environ)
    if place.spark_home is not None:
        environ["SPARK_HOME"] = place.spark_home
    if place.rest is None:
        environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if place.kind not in REMOTE:
            environ["JAVA_HOME"] = str(find_java().home)
    elif place.python is not None:
        environ["PYSPARK_PYTHON"] = place.python
    return environ


def _cancel(place: DriverPlace) -> list[str] | None:
    match place.kind:
        case "yarn":
            return ["yarn", "application", "-kill", "{application_id}"]
        case "k8s":
            namespace = place.conf.get("spark.kubernetes.namespace", "default")
            return ["spark-submit", "--master", place.master, "--kill", f"{namespace}:{{application_id}}"]
        case _:
            return None


def _is_python(application: str) -> bool:
    return application.endswith(".py") and ("://" not in application or application.startswith("file://"))


class _Shipping:
    """Files that are named relative to the DAG's folder go into that of the try: the driver may be elsewhere."""

    def __init__(self, folder: Path, dag_folder: Path | None) -> None:
        self._folder, self._dag_folder = folder / "shipped", dag_folder

    def all(self, names: Sequence[str]) -> str:
        return ",".join(map(self.one, names))

    def one(self, name: str) -> str:
        path, _, fragment = name.partition("#")
        if "://" in path or path.startswith("local:") or os.path.isabs(path):
            return name
        source = (self._dag_folder or Path()) / path
        if not source.is_file():
            there = [entry.name for entry in source.parent.iterdir()] if source.parent.is_dir() else []
            near = get_close_matches(source.name, there, n=1)
            raise BadArgument(
                f"There is no {path} beside the DAG file{f' (there is {near[0]})' if near else ''}. Name a file that is there, an "
                "absolute path that the driver's host has, or a URL."
            )
        target = self._folder / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return f"{target}#{fragment}" if fragment else str(target)
