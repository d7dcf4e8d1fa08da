"""Loads a file of a bundle whose environment has Airflow: its DAGs may be Airflow's, Evenflow's, or both."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions._internal.contextmanager import DagContext

from evenflow.airflow.airflow2 import old_config, old_context, old_imports, settings
from evenflow.airflow.airflow2.homes import provider_of
from evenflow.airflow.airflow2.subdags import is_inside
from evenflow.airflow.loading.dags import spec_of
from evenflow.airflow.loading.forecasts import forecast_of
from evenflow.airflow.loading.lookups import answered
from evenflow.airflow.loading.watches import watches_of
from evenflow.core.forecast import Forecast
from evenflow.core.model import DagSpec
from evenflow.errors import DagError, DagFileError
from evenflow.forking.asking import AskOwner
from evenflow.processor.parse_process import FileReader, Pasts
from evenflow.sdk.loading.loader import LoadedFile, load_file, module_name

_PROVIDERS_MODULE = re.compile(r"airflow\.providers\.[\w.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedFile(LoadedFile):
    """``foreign`` are the DAGs that Airflow's SDK has made, by id."""

    foreign: dict[str, Any]


def load_mixed(path: Path, root: Path, ask: AskOwner | None = None) -> MixedFile:
    """``ask`` is asked for the connections and variables that the file needs at once. Raises what :func:`load_file` does."""
    path, root = path.resolve(), root.resolve()
    name = module_name(path, root)
    old_imports.install()
    settings.install()
    old_config.install()
    old_context.warn_of(path)
    DagContext.autoregistered_dags.clear()
    DagContext.current_autoregister_module_name = name
    try:
        with answered(ask):
            loaded = load_file(path, root)
    except ImportError as error:
        _say_which_provider(error)
        raise
    finally:
        DagContext.current_autoregister_module_name = None
    made = [dag for dag, module in DagContext.autoregistered_dags if module.__name__ == name]
    made += [value for value in vars(sys.modules[name]).values() if isinstance(value, DAG)]
    foreign: dict[str, Any] = {}
    each = {id(dag): dag for dag in made if not is_inside(dag)}.values()  # Airflow's compare by content
    for dag in sorted(each, key=lambda dag: dag.dag_id):
        if dag.dag_id in foreign or dag.dag_id in loaded.dags:
            raise DagFileError(path.name, None, f"This file has two DAGs with the id {dag.dag_id!r}. Rename one of them.")
        dag.fileloc = str(path)
        dag.resolve_template_files()
        foreign[dag.dag_id] = dag
    for dag in watches_of(list(foreign.values()), path.relative_to(root).as_posix()):
        dag.fileloc = str(path)
        foreign[dag.dag_id] = dag
    values = {field.name: getattr(loaded, field.name) for field in fields(LoadedFile)}
    return MixedFile(**values, foreign=foreign)


def _say_which_provider(error: ImportError) -> None:
    """Replaces the message for hosts without Airflow."""
    if error.name is None or error.name.partition(".")[0] != "airflow":
        return
    line = traceback.extract_tb(error.__traceback__)[-1].line or ""  # it names more than the first package that is missing
    named = next((name for name in _PROVIDERS_MODULE.findall(line) if name.startswith(error.name)), error.name)
    provider = provider_of(named)
    if provider is None:
        cure = "No package of this Airflow has it under this name."
    elif (installed := _version_of(provider)) is not None:
        cure = f"{provider} {installed}, which is installed here, does not have it under this name."
    else:
        cure = f"Install it in this environment: pip install {provider}"
    error.__notes__ = [cure]


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


class MixedReader(FileReader):
    """``environment`` is the name of this process's environment. ``ask`` is asked for values while a file is loaded."""

    def __init__(self, environment: str, ask: AskOwner | None = None) -> None:
        self._environment, self._ask = environment, ask

    def load(self, path: Path, root: Path) -> MixedFile:
        return load_mixed(path, root, self._ask)

    def specs(self, loaded: LoadedFile, file: str) -> list[DagSpec]:
        assert isinstance(loaded, MixedFile)
        own = super().specs(loaded, file)
        faults: list[str] = []
        for dag in loaded.foreign.values():
            try:
                own.append(spec_of(dag))
            except DagError as error:
                faults.append(str(error))
        if faults:
            raise DagFileError(file, None, "\n".join(faults))
        return [replace(spec, environment=self._environment) for spec in own]

    def forecasts(self, loaded: LoadedFile, specs: Iterable[DagSpec], pasts: Pasts) -> dict[str, Forecast]:
        assert isinstance(loaded, MixedFile)
        coded = (spec.dag_id for spec in specs if spec.schedule.kind == "code")
        now = datetime.now(UTC)
        return {dag_id: forecast_of(loaded.foreign[dag_id], pasts.get(dag_id), now) for dag_id in coded}

    def watched(self, loaded: LoadedFile, root: Path) -> list[str]:
        assert isinstance(loaded, MixedFile)
        return sorted({*super().watched(loaded, root), *_templates(loaded, root)})


def _templates(loaded: MixedFile, root: Path) -> Iterator[str]:
    """Yields files below the root that fields of tasks name, in every place of their search."""
    source = loaded.path.read_text(encoding="utf-8", errors="replace")
    for dag in loaded.foreign.values():
        folders = [loaded.path.parent, *map(Path, dag.template_searchpath or ())]
        for folder in folders[1:]:
            if folder.resolve().is_relative_to(root) and folder.resolve() != root:
                yield folder.resolve().relative_to(root).as_posix()
        for name in sorted(_named(source, dag)):
            for folder in folders:
                place = (folder / name).resolve()
                if place.is_relative_to(root) and place.is_file():
                    yield place.relative_to(root).as_posix()


def _named(source: str, dag: Any) -> set[str]:
    """Returns texts in the file that end like templates of its tasks, because the SDK has replaced names of files by their
    content.
    """
    endings = tuple({ending for task in dag.task_dict.values() for ending in task.template_ext})
    return {text for text in re.findall(r"""[\"']([^\"'\n]+)[\"']""", source) if endings and text.endswith(endings)}
