"""Questions of a running try to the control plane: ``POST /ask/{name}`` with the try's token as bearer."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from evenflow.core.model import AssetSpec
from evenflow.wire.messages import Message, XComName


class AskWaited(Message):
    """How long ago was the first look of this sensor?"""


class Waited(Message):
    waited_s: float


class AskTriggeringEvents(Message):
    """Which asset events made this run?"""


class AskInletEvents(Message):
    """The newest events of an inlet of this task, an asset or an alias."""

    name: str
    is_alias: bool = False


class AssetEventMessage(Message, omit_defaults=False):
    """An event by a task, or by hand: then it has no task."""

    asset: str
    uri: str
    at: str  # ISO 8601 with offset
    extra: dict[str, Any] = field(default_factory=dict)
    partition: str | None = None
    dag_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    map_index: int | None = None


class AssetEvents(Message):
    """Events, the oldest first."""

    events: list[AssetEventMessage]


class AskInletAssets(AskInletEvents):
    """Which assets does an inlet or outlet of this task name? An alias: those that tasks have added to it."""


class InletAssets(Message, omit_defaults=False):
    """By name. None: nothing is known by the name."""

    assets: list[AssetSpec]


class AskStates(Message):
    """What are the states of a DAG's runs with one of these logical dates or names, or of these of their tasks?"""

    dag_id: str
    logical_dates: list[str] = field(default_factory=list)
    task_ids: list[str] = field(default_factory=list)
    group_id: str | None = None
    run_ids: list[str] = field(default_factory=list)


class OtherRunState(Message, omit_defaults=False):
    run_id: str
    logical_date: str | None
    state: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # by task: how many instances are in each state


class States(Message, omit_defaults=False):
    """``missing``: task ids, or the group, that the DAG's newest version lacks. Null when the DAG does not exist."""

    runs: list[OtherRunState] = field(default_factory=list)
    missing: list[str] | None = None


class AskTrigger(Message):
    """Make a run of another DAG. The same try, or a later try of the same task instance, gets the same run."""

    dag_id: str
    conf: dict[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    logical_date: str | None = None
    reset: bool = False  # an existing run is cleared and counts as made
    fail_when_paused: bool = False


class Triggered(Message, omit_defaults=False):
    """``is_own``: this task instance made the run, now or in an earlier try; else a run of this name existed."""

    run_id: str
    state: str
    is_own: bool


class AskNamed(Message):
    """What is the connection, or the variable, of this name? The answer covers only what the try's DAG may use."""

    name: str
    similar: bool = False  # if it is not defined, also return similar names


class Found(Message, omit_defaults=False):
    text: str | None = None  # null: not defined in the database
    similar: list[str] = field(default_factory=list)  # names of similar length that the DAG may use
    stores: list[str] = field(default_factory=list)  # names of the secret stores that do not have it either


class SetVariable(Message):
    """Store a variable. An existing one keeps its list of DAGs."""

    name: str
    text: str
    description: str | None = None


class AskPriorRun(XComName, kw_only=True, omit_defaults=False):
    """Which run has the newest value of this task under this key, of this run and those of the DAG with earlier logical dates?"""

    map_index: int


class PriorRun(Message, omit_defaults=False):
    run_id: str | None = None  # null: none of the newest 1,000 runs has one


class AskElement(Message):
    """Which instance of a mapped task has the ``index``-th of the values that were pushed under this key, in map order?"""

    task_id: str
    key: str
    index: int


class Element(Message, omit_defaults=False):
    length: int  # how many were pushed
    map_index: int | None  # null: fewer were pushed


class AskPreviousRun(Message):
    """When was the last successful run before this one?"""


class PreviousRun(Message):
    data_interval_start: str | None = None
    data_interval_end: str | None = None
    start_date: str | None = None
    end_date: str | None = None


class AskOnce(Message):
    """What did this task instance store under this name, in this try or an earlier one, since its last clear?"""

    name: str


class KeptValue(Message, omit_defaults=False):
    value: Any = None  # in JSON's own types
    secret: bool = False  # it contains a secret that a try was given: its texts are masked in the log of the try that asks


class Once(Message, omit_defaults=False):
    key: str  # the same each time until it is forgotten: for outside systems that should do a thing once
    kept: KeptValue | None = None  # null: nothing yet


class SetOnce(Message):
    """Store a value. An existing value of this name stays, and is the answer, unless this one replaces it."""

    name: str
    kept: KeptValue
    replaces: bool = False
    outside: bool = (
        False  # it names what runs outside: when the try is over and it was not forgotten, on_kill of the task ends that
    )


class ForgetOnce(Message):
    name: str | None = None  # null: all that the task instance has stored


class AskAssetValue(Message):
    """What do tasks keep with this asset under this name? The task of the try must name the asset as an inlet or an outlet."""

    asset: str
    name: str


class AssetValue(Message, omit_defaults=False):
    kept: KeptValue | None = None  # null: nothing


class SetAssetValue(AskAssetValue):
    """Keep a value with the asset, in place of what is there. It may hold no secret: every task that names the asset sees it."""

    kept: KeptValue


class ForgetAssetValues(Message):
    """Forget what is kept with an asset under this name."""

    asset: str
    name: str | None = None  # null: all of it


class TellWatched(Message):
    """The asset that the DAG of this trigger watches has changed. What a trigger tells is numbered from 1 on; the same number again
    changes nothing.
    """

    number: int
    extra: dict[str, Any] = field(default_factory=dict)


class AskFolder(Message):
    """Where may this try put a DataFrame that will be its result?"""


class Folder(Message):
    """The folder belongs to the try, and lasts if the result refers to it."""

    url: str  # of object storage
    name: str  # of a folder there


class Rendered(Message):
    """The template fields of this try for people; the worker has masked them."""

    fields: dict[str, str]


RecordKind = Literal["spark_cost", "spark_stages", "spark_ui", "lineage", "links"]


class KeepRecord(Message):
    """Keep what this try says of its work, for people and for history; the worker has masked it. Each kind once; of figures of
    stages the newest, of links (their names and URLs) each name once.
    """

    kind: RecordKind
    value: dict[str, Any]


class Done(Message):
    """It is done."""


QUESTIONS: dict[str, tuple[type[Message], type[Message]]] = {
    "waited": (AskWaited, Waited),
    "triggering_events": (AskTriggeringEvents, AssetEvents),
    "inlet_events": (AskInletEvents, AssetEvents),
    "inlet_assets": (AskInletAssets, InletAssets),
    "states": (AskStates, States),
    "trigger": (AskTrigger, Triggered),
    "connection": (AskNamed, Found),
    "variable": (AskNamed, Found),
    "set_variable": (SetVariable, Done),
    "delete_variable": (AskNamed, Done),
    "previous_run": (AskPreviousRun, PreviousRun),
    "element": (AskElement, Element),
    "prior_run": (AskPriorRun, PriorRun),
    "folder": (AskFolder, Folder),
    "rendered": (Rendered, Done),
    "record": (KeepRecord, Done),
    "once": (AskOnce, Once),
    "set_once": (SetOnce, Once),
    "forget_once": (ForgetOnce, Done),
    "asset_value": (AskAssetValue, AssetValue),
    "set_asset_value": (SetAssetValue, Done),
    "forget_asset_values": (ForgetAssetValues, Done),
    "watched": (TellWatched, Done),
}
