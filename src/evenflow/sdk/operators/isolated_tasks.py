"""``@task.virtualenv`` and ``@task.external_python``: a function of the DAG file that runs in another Python."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from evenflow.errors import BadArgument, IsolatedTaskFailed, XComError
from evenflow.sdk.context import Context
from evenflow.sdk.operator import PythonOperator
from evenflow.sdk.operators.branching import BranchByResult
from evenflow.sdk.secrets.connections import get_connection

if TYPE_CHECKING:
    from evenflow.sdk.operators.venvs import Needs


class _IsolatedOperator(PythonOperator):
    """Runs the function in the Python that a subclass finds. The function imports everything that it uses. Its arguments, and the
    entries of the context that it names, are data: JSON types, tuples, sets, dates and times, paths. So is its result.
    """

    takes_async = False

    def __init__(
        self,
        *,
        env_vars: Mapping[str, str] | None = None,
        inherit_env: bool = True,
        skip_on_exit_code: int | Sequence[int] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.env_vars, self.inherit_env = dict(env_vars or {}), inherit_env
        codes = () if skip_on_exit_code is None else skip_on_exit_code
        self.skip_on_exit_code = [codes] if isinstance(codes, int) else list(codes)

    @contextmanager
    def python(self, where: str) -> Iterator[str | os.PathLike[str]]:
        """Yields the Python to run in, which stays while the context lasts."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        from evenflow.sdk.operators.isolated import own_environment, run_in, source_of

        where = f"Task {context['ti'].task_id!r}"
        for guard in getattr(self.python_callable, "guards", ()):
            guard.check(context)
        function = inspect.unwrap(self.python_callable)
        source = source_of(function, where)
        kwargs = self._crossing(function, context, where)
        with self.python(where) as python:
            return run_in(
                python,
                source,
                self.op_args,
                kwargs,
                env={**(own_environment() if self.inherit_env else {}), **self.env_vars},
                skip_on_exit_code=self.skip_on_exit_code,
                where=where,
            )

    def _crossing(self, function: Callable[..., Any], context: Context, where: str) -> dict[str, Any]:
        """Returns the arguments and the entries of the context that the function wants. With ``**kwargs`` it gets those that can
        cross.
        """
        from evenflow.sdk import xcom

        kept = dict(self.op_kwargs)
        named = inspect.signature(function).parameters
        for name, value in self.signature.fill(self.op_args, self.op_kwargs, context).items():
            if name in kept:
                continue
            plain = dict(value) if isinstance(value, dict) else value
            try:
                xcom.encode(plain, name)
            except XComError:
                if name in named:
                    message = f"{where}: {name!r} of the context cannot be brought to another Python. Give what you need of it."
                    raise IsolatedTaskFailed(message) from None
            else:
                kept[name] = plain
        return kept


class ExternalPythonOperator(_IsolatedOperator):
    """Runs the function in the Python at the path ``python`` on the worker's host."""

    operator_name = "external_python"
    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs", "env_vars", "python_path")

    def __init__(self, *, task_id: str, python: str | os.PathLike[str], **arguments: Any) -> None:
        super().__init__(task_id=task_id, **arguments)
        self.python_path = os.fspath(python)
        if not os.path.isabs(self.python_path) and "{{" not in self.python_path:
            raise BadArgument(f"Task {task_id!r}: python must be an absolute path such as /opt/venvs/x/bin/python, not {python!r}.")

    @contextmanager
    def python(self, where: str) -> Iterator[str | os.PathLike[str]]:
        from evenflow.sdk.operators.isolated import interpreter_version

        interpreter_version(self.python_path, where)
        yield self.python_path


class PythonVirtualenvOperator(_IsolatedOperator):
    """Runs the function in an environment with ``requirements``: a list, or the path of a .txt file beside the DAG file.

    ``python_version`` such as ``"3.12"`` defaults to the worker's. Packages come from where uv takes them on the worker's host;
    ``index_conn_ids`` name connections that are indexes, the default one first. The environment is kept for the next task with
    equal needs, in ``venv_cache_path`` or ``EVENFLOW_VENV_DIR`` of the worker.
    """

    operator_name = "virtualenv"
    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs", "env_vars", "requirements")

    def __init__(
        self,
        *,
        task_id: str,
        requirements: str | Sequence[str] = (),
        python_version: str | None = None,
        system_site_packages: bool = False,
        index_urls: str | Sequence[str] = (),
        index_conn_ids: str | Sequence[str] = (),
        pip_install_options: Sequence[str] = (),
        venv_cache_path: str | os.PathLike[str] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(task_id=task_id, **arguments)
        self.requirements = requirements if isinstance(requirements, str) else list(requirements)
        self.python_version, self.system_site_packages = python_version, system_site_packages
        self.index_urls = [index_urls] if isinstance(index_urls, str) else list(index_urls)
        self.index_conn_ids = [index_conn_ids] if isinstance(index_conn_ids, str) else list(index_conn_ids)
        self.pip_install_options, self.venv_cache_path = list(pip_install_options), venv_cache_path
        from urllib.parse import urlsplit

        for url in self.index_urls:
            if urlsplit(url).password is not None:
                raise BadArgument(
                    f"Task {task_id!r}: index_urls has a password. Make a connection of it, and give its id to index_conn_ids."
                )

    @contextmanager
    def python(self, where: str) -> Iterator[str | os.PathLike[str]]:
        from pathlib import Path

        from evenflow.sdk.operators.venvs import default_folder, environment

        folder = Path(self.venv_cache_path) if self.venv_cache_path else default_folder()
        with environment(self._needs(), folder, where) as python:
            yield python

    def _needs(self) -> Needs:
        import platform

        from evenflow.sdk.operators.venvs import Needs

        return Needs(
            requirements=tuple(self._listed()),
            python=self.python_version or platform.python_version(),
            system_site_packages=self.system_site_packages,
            indexes=(*(get_connection(conn_id).uri for conn_id in self.index_conn_ids), *self.index_urls),
            options=tuple(self.pip_install_options),
        )

    def _listed(self) -> list[str]:
        if not isinstance(self.requirements, str):
            return list(self.requirements)
        if not self.requirements.endswith(".txt"):
            return self.requirements.splitlines()
        from pathlib import Path

        file = (self.dag.folder or Path()) / self.requirements
        if not file.is_file():
            raise IsolatedTaskFailed(f"{self.qualified_name}: there is no {file} with requirements on this worker.")
        lines = (line.partition(" #")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line and not line.startswith("#")]


class BranchExternalPythonOperator(BranchByResult, ExternalPythonOperator):
    """Follows the tasks whose ids the function returns, see :meth:`BaseBranchOperator.choose_branch`."""

    operator_name = "branch_external_python"


class BranchPythonVirtualenvOperator(BranchByResult, PythonVirtualenvOperator):
    """Follows the tasks whose ids the function returns, see :meth:`BaseBranchOperator.choose_branch`."""

    operator_name = "branch_virtualenv"
