"""Messages between the execution API and processes that run user code. MessagePack over HTTP, one struct a body.

A *fleet token* lets a process register; the *service token* that it then gets is good for the beats, claims and deliveries of this
one service. A *try token* comes with an assignment and is good for that try alone: reports, logs and XComs carry it, so no try can
speak for another. Times are ages in seconds at the moment of sending (by the sender's monotonic clock): hosts need no common clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from evenflow.core.callbacks import CallbackOf
from evenflow.core.deferral import Resumed
from evenflow.core.ending import Ending
from evenflow.core.limits import MOST_IN_HAND
from evenflow.core.model import Resources
from evenflow.core.object_names import SealedKind
from evenflow.core.service import UserCodeKind

SCHEMA = "/execution/v1"
AIRFLOW_API = "/execution/airflow"  # Airflow's Task Execution API, for clients of its SDK
CONTENT_TYPE = "application/msgpack"


class Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of all messages: readers ignore unknown fields, so that both sides can be upgraded in any order."""


class Refusal(Message):
    """The body of every answer with a status of 400 or above."""

    code: str  # for programs: unauthorized, forbidden, stale_epoch, too_large, ...
    message: str  # for people
    offsets: list[int] = []  # of ``cannot_store`` alone: as in LogsAnswer


# -- services ----------------------------------------------------------------------------------------------------------


class Register(Message):
    """POST /services"""

    kind: UserCodeKind
    name: str
    host: str
    pid: int
    version: str
    detail: dict[str, Any] = {}  # what it says of itself: at least what DETAILS names, of these types
    oldest_wire: int = 1  # the versions of these messages that it speaks, from and to; without a value, the first
    wire: int = 1


Number = Annotated[int, msgspec.Meta(ge=0, le=MOST_IN_HAND)]


class WorkerDetail(Message):
    slots: Number = 0
    resume_slots: Number = 0
    running: Number = 0
    queues: list[str] = []
    outrun: list[int] = []  # epochs of tries that it cannot end
    handed: bool = False


class TriggererDetail(Message):
    capacity: Number = 0
    running: Number = 0
    queues: list[str] = []


class ReadBundle(Message):
    name: str
    warnings: list[str] = []  # about the plugins of its environment


class ProcessorDetail(Message):
    bundles: list[ReadBundle] = []


DETAILS: Mapping[UserCodeKind, type[WorkerDetail | TriggererDetail | ProcessorDetail]] = MappingProxyType(
    {"worker": WorkerDetail, "triggerer": TriggererDetail, "processor": ProcessorDetail}
)


class Registered(Message):
    service_id: int
    lease_s: float  # without an answered beat for this long the service counts as lost
    beat_s: float  # beat this often
    wire: int = 1  # the newest version that both sides know
    token: str = ""  # this service's own token for its later requests; an API of the previous release gives none


class Beat(Message):
    """POST /services/{service_id}/beat"""

    state: Literal["active", "draining", "stopped"] = "active"
    epochs: list[int] = []  # worker: every try in hand, from claim until its exit report is acknowledged; stopped: that was in hand
    starting: list[int] | None = None  # worker: those whose process does not run yet; null: unknown
    detail: dict[str, Any] = {}
    heard_at: float | None = None  # triggerer: ``at`` of its last answer; 0: none yet; null: it does not know this field
    asks: str | None = None  # triggerer: the request key of its newest claim, whose answer may still be on its way


class BeatAnswer(Message):
    known: bool = True  # false: the lease has ended and its work is others'; it kills every try and registers anew
    kill: list[int] = []  # tries to end: revoked, or a person or limit wants it
    revoked: list[int] = []  # those that may run elsewhere by now: to be killed before any work continues
    resend: list[Assignment] = []  # claimed by this worker and not listed
    state: Literal["active", "draining"] = "active"
    token: str | None = None  # to be used from now on: the shown token is half over, or its key will be removed
    surplus: int = 0  # to a triggerer: how many triggers to give back, because others have fewer
    at: float | None = None  # to a triggerer: when its beat was stored, in seconds since 1970 by the database's clock
    closed: bool = False  # to a worker: it gets no tries for now, because it is fenced or frozen


# -- tries -------------------------------------------------------------------------------------------------------------


class Claim(Message):
    """POST /claim. Answered at once when there is work, else when work comes or after ``wait_s``."""

    service_id: int
    request_key: str  # the same key again returns the same tries, in case an answer was lost
    slots: int
    queues: list[str]
    wait_s: float = 0.0
    resume_slots: int | None = None  # further free slots for resumes only; null: it does not know resumes, and gets none
    epochs: list[int] = []  # only these tries: they were handed to the worker. Answered at once
    handed: bool = False  # first starts are handed to the worker: it asks for resumes of what is sent to an executor of its kind


class Assignment(Message):
    """One try, with all that its process needs."""

    epoch: int
    token: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    max_tries: int
    operator: str
    code_hash: str
    file: str
    run_type: str
    params: dict[str, Any]
    run_after: str  # ISO 8601 with offset, as the three below
    logical_date: str | None = None
    data_interval_start: str | None = None
    data_interval_end: str | None = None
    execution_timeout: float | None = None
    reuse: bool = False  # its process may do other tries of this version of the DAG before and after it
    resources: Resources | None = None  # limits of its processes together
    version_number: int = 1
    map_length: int | None = None
    default_timezone: str = "UTC"  # with which the version was made
    environment: str = ""  # the name of the Python that runs it; empty: the worker's own
    callback: CallbackOf | None = None  # set: the try calls a function of the task, or of the DAG when ``task_id`` is empty
    resumed: Resumed | None = None  # set: the try has begun before, and resumes from waiting
    traceparent: str = (
        ""  # the span that its process is, for spans of the task's own (W3C Trace Context); empty: runs are not traced
    )


class ClaimAnswer(Message):
    assignments: list[Assignment] = []
    kill: list[int] = []
    state: Literal["active", "draining", "lost"] = "active"
    limited: bool = False  # of handed tries: this worker gets less than it asks for; another one may take the rest
    busy: list[int] = []  # of handed tries: undecided for a moment; the worker asks again


class Report(Message):
    """How a try ended, or that it has started; the start may be left out when the end follows soon, which implies it."""

    token: str
    age_s: float = 0.0  # since the event
    ending: Ending | None = None  # null: it has started
    stored: StoredObject | None = None  # where its result is, when that is too large for the report
    secret: bool = False  # its result contains a secret that the try was given


class Reports(Message):
    """POST /reports. All or nothing; a repeated batch does no harm (a report of a past epoch changes nothing)."""

    reports: list[Report]


class ReportsAnswer(Message):
    accepted: int
    refused: list[str] = []  # why a report cannot be stored (result too large, token forged); the others are stored
    refused_at: list[int] = []  # positions in the batch of the refused ones, in the order of ``refused``


class LostLog(Message):
    """Bytes that the writer of a log had to drop, because they were not stored. Ages in seconds."""

    bytes: int
    lines: int
    since: int
    until: int
    reason: str


class LogChunk(Message):
    token: str
    offset: int  # bytes that its writer wrote before the chunk; bytes that are stored already are skipped
    data: bytes
    lost: LostLog | None = None  # what is lost directly before ``offset``, unless it was stored and only the answer was lost


class Logs(Message):
    """POST /logs. A server that cannot store all of it answers 507 ``cannot_store``, with the offsets that it has."""

    chunks: list[LogChunk]


REFUSED_LOG = -1  # in LogsAnswer.offsets: the try is not current or its token is invalid; send no more of this log


class LogsAnswer(Message):
    """For each chunk, up to where its log is stored now: continue from there. The log itself mentions what is missing before the
    chunk.
    """

    offsets: list[int]


class StoredObject(Message):
    """A value that the worker has stored in object storage. Its name begins with the epoch of the try that made it."""

    name: str
    size: int  # bytes of JSON
    length: int | None = None  # elements, of a value that can be mapped over


class XComPush(Message):
    """POST /xcom with the try token as bearer"""

    key: str
    value: bytes  # JSON; null if it is stored
    stored: StoredObject | None = None
    secret: bool = False  # it contains a secret that the try was given
    length: int | None = None  # elements to map over, where the value does not show them


class Progress(Message):
    """POST /progress with the try token as bearer: what the try is doing, for people. The newest replaces the last one."""

    label: str
    done: int
    total: int
    detail: dict[str, Any] = {}


class XComName(Message):
    task_id: str
    key: str = "return_value"


class XComPull(XComName):
    """POST /xcom/pull with the try token as bearer. ``map_index`` null: all instances of a mapped task, as a list in map order."""

    map_index: int | None = None
    run_id: str | None = None  # of another run of the same DAG


class XComValue(Message):
    found: bool
    value: bytes | None = None  # JSON
    stored: str | None = None  # the name of the object that is the value
    stored_items: dict[int, str] = {}  # of a list: names of the objects that are its elements, by position
    secret: bool = False  # it contains a secret: its texts are masked in the log of the try that pulls it


# -- DAG files ---------------------------------------------------------------------------------------------------------


class FileSeen(Message):
    file: str  # path inside the bundle, / as separator
    fingerprint: str


class FilesSeen(Message):
    """POST /files/seen: the whole bundle at this moment; files that are not listed are gone."""

    bundle: str
    files: list[FileSeen]


class LeasedFile(FileSeen):
    """``pasts`` are the beginnings and ends of the data intervals that were scheduled last, by DAG, in ISO 8601."""

    bundle: str
    pasts: dict[str, tuple[str, str]] = {}


class FilesLease(Message):
    """POST /files/lease: files that changed since they were parsed, least recently parsed first, leased files skipped.

    ``lacking`` were leased before and are given back: this processor's copy of the bundle has them in another form, or not at all.
    """

    service_id: int
    bundles: list[str]
    limit: int
    lease_s: float
    lacking: list[LeasedFile] = []


class FilesLeased(Message):
    files: list[LeasedFile]
    default_timezone: str = "UTC"  # of times in the files without a time zone


class AskValue(Message):
    """POST /values: what is this connection, or variable? Asked for a file while it is loaded, outside of tries."""

    kind: SealedKind
    name: str
    file: str


class GivenValue(Message):
    text: str | None = None  # null: not defined
    similar: list[str] = []  # if it is not defined: similar names that all DAGs may use
    changed_at: datetime | None = None  # of the value in the database


class AskedValue(Message):
    """A value that a file has asked for, and when the one that it was given had changed."""

    kind: SealedKind
    name: str
    changed_at: datetime | None = None
    refused: bool = False


class ParsedFile(Message):
    """POST /files/parsed: the result of one file."""

    bundle: str
    file: str
    fingerprint: str
    seconds: float
    specs: list[str] = []  # DagSpec JSON
    forecasts: dict[str, str] = {}  # JSON of core/forecast by DAG, of those whose schedule is code
    code_hash: str | None = None  # of the archive that the DAGs need
    code: bytes | None = None  # the archive itself, if it is small: one request instead of three
    revision: str | None = None  # the commit of the file, in a bundle with commits
    error: str | None = None  # the traceback
    error_line: int | None = None
    warnings: list[str] = []  # each begins with its place
    asked: list[AskedValue] = []  # while it was loaded


class ParsedAnswer(Message):
    need_code: bool = False  # the archive is not known: PUT /code/{hash} and send again
    errors: list[str] = []  # specs that were refused, e.g. a dag_id that another file has
