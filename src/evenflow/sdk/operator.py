"""Operators: the work of a task. To write one, subclass ``BaseOperator`` and write ``execute``."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Unpack

from evenflow.core.likeness import did_you_mean
from evenflow.errors import BadArgument, TaskDeferred
from evenflow.sdk import scope
from evenflow.sdk.awaiting import run_async, waiting
from evenflow.sdk.context import Context
from evenflow.sdk.dag import DAG
from evenflow.sdk.deferring import ResumedTry, go_on
from evenflow.sdk.edges import connect
from evenflow.sdk.logged import Logged
from evenflow.sdk.mapped.mapping import MappedOperator
from evenflow.sdk.mapped.partials import Begun
from evenflow.sdk.options import OPTION_NAMES, TaskOptions
from evenflow.sdk.references import references
from evenflow.sdk.signature import Signature, keywords_of
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import TaskGroup
from evenflow.sdk.triggers import BaseTrigger

if TYPE_CHECKING:
    _Registering = type
else:

    class _Registering(type):
        """Adds an operator to its DAG when its whole ``__init__`` has run, so that none is added half made."""

        def __call__(cls, *args, **kwargs):
            try:
                operator = super().__call__(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # no constructor has begun
                    _refuse_arguments(cls, args, kwargs)
                raise
            if not scope.is_detached():
                _check_made(operator)
                operator.join_dag(*(getattr(operator, name) for name in cls.template_fields))
            return operator


class BaseOperator(Logged, Task, metaclass=_Registering):
    """A task that runs ``execute``.

    ``template_fields`` names the attributes that may hold results of other tasks and templates, also deep inside lists, tuples and
    dicts: their values replace them before ``execute`` runs. A string there with an ending of ``template_ext`` names a file, whose
    text is the template. A subclass passes its ``**options`` on to ``super().__init__``.
    """

    dag: DAG
    operator_name: ClassVar[str] = ""  # the kind of the task for people; the class name if empty
    template_ext: ClassVar[Sequence[str]] = ()  # of files, e.g. (".sql",)
    template_ext_in_dicts: ClassVar[bool] = False  # whether values of dicts may be names of files, too
    preloaded: ClassVar[tuple[str, ...]] = ()  # modules that its tries import
    preloaded_to_defer: ClassVar[tuple[str, ...]] = ()  # further modules for a deferrable one
    releases_while_deferred: ClassVar[Mapping[str, str] | None] = None  # unless the task says otherwise

    def __init__(
        self, *, task_id: str, dag: DAG | None = None, task_group: TaskGroup | None = None, **options: Unpack[TaskOptions]
    ) -> None:
        super().__init__(
            task_id=task_id, operator=self.operator_name or type(self).__name__, dag=dag, group=task_group, options=options
        )

    def execute(self, context: Context) -> Any:
        """Does the work. The return value is the result of the task."""
        raise NotImplementedError(f"{type(self).__name__} has no execute(self, context)")

    def defer(
        self,
        *,
        trigger: BaseTrigger,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | float | None = None,
        queue: str | None = None,
    ) -> NoReturn:
        """Ends the process, without ending the try. Later ``method_name(context, event=..., **kwargs)`` is called with the payload
        of the trigger's event, in a new process, without any attribute that was set on ``self``.

        After ``timeout`` the try fails with :class:`TaskDeferralTimeout`. ``queue`` chooses triggerers.
        """
        raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kwargs, timeout=timeout, queue=queue)

    def resume_execution(self, context: Context, resumed: ResumedTry) -> Any:
        """Returns the result of a try that was deferred."""
        return go_on(self, context, resumed)

    def on_kill(self) -> None:
        """Stops what a try has started outside, when the try is ended early: by a person, by a timeout, or with its run.

        While the try is deferred, a separate process calls it: there it learns from ``get_current_context()`` what to stop, e.g. by
        ``once_value``. An operator with work in other processes or systems overrides it.
        """

    @classmethod
    def overrides_on_kill(cls) -> bool:
        return cls.on_kill is not BaseOperator.on_kill

    @classmethod
    def modules_of_tries(cls, deferrable: bool) -> tuple[str, ...]:
        return cls.preloaded + (cls.preloaded_to_defer if deferrable else ())

    def templates(self) -> tuple[Any, tuple[str, ...]]:
        return [getattr(self, field, None) for field in self.template_fields], tuple(self.template_ext)

    def templates_by_field(self) -> Iterable[tuple[str, Any]]:
        return [(field, getattr(self, field, None)) for field in self.template_fields]

    @classmethod
    def released_by_default(cls, deferrable: bool) -> dict[str, str] | None:
        return dict(cls.releases_while_deferred) if deferrable and cls.releases_while_deferred else None

    def make_instance(self, arguments: Mapping[str, Any]) -> BaseOperator:
        instance = copy.copy(self)
        instance.__dict__.pop("is_made", None)
        return instance

    def _check_assigned(self, name: str, value: Any) -> None:
        super()._check_assigned(name, value)
        if name in self.template_fields:
            for reference in references([value]):
                for source in reference.sources():
                    connect(source, self)

    @classmethod
    def partial(cls, *, task_id: str, **arguments: Any) -> Partial:
        """Returns the arguments that all instances of a mapped task share; continue with ``.expand(...)``."""
        _check_class(cls, f"Task {task_id!r}")
        return scope.begun(Partial(cls, task_id, arguments), arguments.get("dag"))


class Partial(Begun[MappedOperator]):
    """An operator with some of its arguments, to be mapped over others."""

    def __init__(self, operator: type[BaseOperator], task_id: str, arguments: dict[str, Any]) -> None:
        self.operator, self.task_id, self.arguments = operator, task_id, arguments
        self.owner = f"Task {task_id!r}"

    def __repr__(self) -> str:
        return f"{self.operator.__name__}.partial(task_id={self.task_id!r})"

    def _taken(self) -> Collection[str]:
        return self.arguments.keys() - OPTION_NAMES

    def _mapped(self, inputs: dict[str, Any], example: Mapping[str, Any] | None, *, unpack: bool) -> MappedOperator:
        options = {name: value for name, value in self.arguments.items() if name in OPTION_NAMES}
        dag, group = self.arguments.get("dag"), self.arguments.get("task_group")
        shared = {
            name: value for name, value in self.arguments.items() if name not in options and name not in ("dag", "task_group")
        }
        if example is not None:
            _check_constructor(self.operator, self.task_id, shared, example)

        def build(mapped: Mapping[str, Any]) -> BaseOperator:
            return self.operator(task_id=self.task_id, **shared, **mapped)

        return MappedOperator(
            task_id=self.task_id,
            operator=self.operator.operator_name or self.operator.__name__,
            dag=dag,
            group=group,
            options=options,
            shared=shared,
            inputs=inputs,
            build=build,
            unpack=unpack,
            template_ext=self.operator.template_ext,
            kind=self.operator,
        )


def _refuse_arguments(operator: type[BaseOperator], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises :class:`BadArgument` for wrong arguments of the constructor, first for an unknown name."""
    where = f"Task {kwargs['task_id']!r}" if "task_id" in kwargs else f"A task of {operator.__name__}"
    known = keywords_of(operator)
    for name in kwargs:
        if name not in known and name not in OPTION_NAMES and (close := did_you_mean(name, [*known, *OPTION_NAMES])):
            raise BadArgument(f"{where}: {operator.__name__}() has no argument {name!r}.{close}")
    own = inspect.signature(operator.__init__)
    taken = own.replace(parameters=list(own.parameters.values())[1:])  # without self
    Signature(operator.__name__, taken).check(args, kwargs, where)


def _check_made(operator: BaseOperator) -> None:
    """Raises :class:`BadArgument` for a class that makes no task, or whose task can do nothing."""
    kind, name = type(operator), type(operator).__name__
    if "task_settings" not in vars(operator):
        raise BadArgument(
            f"{name}.__init__() does not call super().__init__(**options), so it makes no task. Write that into "
            "it, with the options that it is given."
        )
    _check_class(kind, operator.qualified_name)
    for field in kind.template_fields:
        if not hasattr(operator, field):
            hint = did_you_mean(field, vars(operator)) or f" Say self.{field} = ... in its __init__."
            raise BadArgument(
                f"{operator.qualified_name}: template_fields of {name} has {field!r}, and the operator no such attribute.{hint}"
            )


def _check_class(kind: type[BaseOperator], where: str) -> None:
    if kind.execute is BaseOperator.execute:
        hint = did_you_mean("execute", [each for base in kind.__mro__ for each in vars(base) if each != "execute"])
        raise BadArgument(f"{where}: {kind.__name__} has no execute(self, context), so it has nothing to do.{hint}")


def _check_constructor(operator: type[BaseOperator], task_id: str, shared: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    for name in inputs:
        if name in OPTION_NAMES or name in ("task_id", "dag", "task_group"):
            raise BadArgument(f"Task {task_id!r}: {name!r} is the same for all instances of a task. Give it to partial().")
    Signature.of(operator).check((), {"task_id": task_id, **shared, **inputs}, f"Task {task_id!r}")


class EmptyOperator(BaseOperator):
    """Does nothing, and joins edges. The scheduler finishes it itself, without a worker."""

    operator_name = "empty"
    is_empty = True

    def execute(self, context: Context) -> None:
        return None


class PythonOperator(BaseOperator):
    """Calls ``python_callable(*op_args, **op_kwargs)``.

    A parameter of the function that is named after an entry of the context (``ds``, ``ti``, ``params``, ...) and is not given gets
    that entry; a function with ``**kwargs`` gets them all. ``templates_dict`` is rendered and is an entry of the context. Strings
    with an ending of ``templates_exts`` name files of templates.
    """

    operator_name = "python"
    template_fields: ClassVar[Sequence[str]] = ("templates_dict", "op_args", "op_kwargs")
    template_ext_in_dicts = True
    injected: ClassVar[frozenset[str]] = frozenset()  # parameters that the operator itself fills in
    takes_async: ClassVar[bool] = True  # whether it takes an `async def`

    def __init__(
        self,
        *,
        task_id: str,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] = (),
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: Mapping[str, Any] | None = None,
        templates_exts: Sequence[str] | None = None,
        dag: DAG | None = None,
        task_group: TaskGroup | None = None,
        **options: Unpack[TaskOptions],
    ) -> None:
        super().__init__(task_id=task_id, dag=dag, task_group=task_group, **options)
        if not callable(python_callable):
            raise BadArgument(f"{self.qualified_name}: python_callable must be a function, not {python_callable!r}.")
        self.python_callable = python_callable
        self.templates_dict = None if templates_dict is None else dict(templates_dict)
        if templates_exts:
            self.template_ext = tuple(templates_exts)  # type: ignore[misc]  # of this task alone
        self.signature = Signature.of(python_callable, self.injected)
        if scope.is_detached():
            self.op_args, self.op_kwargs = tuple(op_args), dict(op_kwargs or {})
        else:
            self.op_args, self.op_kwargs = self.signature.check(op_args, op_kwargs or {}, self.qualified_name)

    def execute(self, context: Context) -> Any:
        return self.call(context)

    def call(self, context: Context, **injected: Any) -> Any:
        """Returns the function's result; the operator fills in ``injected``. An ``async def`` runs to its end, or until it
        waits.
        """
        result = self.python_callable(*self.op_args, **self.signature.fill(self.op_args, {**self.op_kwargs, **injected}, context))
        if inspect.iscoroutine(result):
            return run_async(result)
        return result

    def resume_execution(self, context: Context, resumed: ResumedTry) -> Any:
        if resumed.method != self.begin_again.__name__:
            return super().resume_execution(context, resumed)
        return self.begin_again(context, resumed)

    def begin_again(self, context: Context, resumed: ResumedTry) -> Any:
        """Begins a function again that has waited."""
        with waiting(resumed):
            return self.execute(context)

    def runs_async(self) -> bool:
        return is_async(self.python_callable)


def is_async(function: Callable[..., Any]) -> bool:
    """Returns whether it can wait. Its triggers, and whether these must be stopped, are known only when it runs."""
    return inspect.iscoroutinefunction(inspect.unwrap(function))
