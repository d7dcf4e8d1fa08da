"""What processes that run user code say to the execution API, and what it answers. MessagePack over HTTP, one struct a body.

A *service token* lets a process register, beat, claim and deliver DAGs. A *try token* comes with an assignment and is good for
that try alone: reports, logs and XComs carry it, so no try can speak for another. Times are ages in seconds at the moment of
sending (by the sender's monotonic clock), so hosts need no common clock.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA = "/execution/v1"
CONTENT_TYPE = "application/msgpack"


class Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of all messages: unknown fields are ignored, so that both sides can be upgraded in any order."""


class Refusal(Message):
    """The body of every answer with a status of 400 or above."""

    code: str  # for programs: unauthorized, forbidden, stale_epoch, too_large, ...
    message: str  # for people


# -- services ----------------------------------------------------------------------------------------------------------


class Register(Message):
    """POST /services"""

    kind: Literal["worker", "processor", "triggerer"]
    name: str
    host: str
    pid: int
    version: str
    detail: dict[str, Any] = {}  # worker: slots, queues


class Registered(Message):
    service_id: int
    lease_s: float  # without an answered beat for this long the service counts as lost
    beat_s: float  # beat this often


class Beat(Message):
    """POST /services/{service_id}/beat"""

    state: Literal["active", "draining", "stopped"] = "active"
    epochs: list[int] = []  # worker: every try that it has, from claim until its exit report is acknowledged
    detail: dict[str, Any] = {}


class BeatAnswer(Message):
    known: bool = True  # false: the lease lapsed; kill every try, register anew
    kill: list[int] = []  # tries to kill: revoked, or an operator wants them ended
    resend: list[Assignment] = []  # claimed by this worker and not listed
    state: Literal["active", "draining"] = "active"


# -- tries -------------------------------------------------------------------------------------------------------------


class Claim(Message):
    """POST /claim. Answered at once when there is work, else when there is or after ``wait_s``."""

    service_id: int
    request_key: str  # the same key again returns the same tries: for lost answers
    slots: int
    queues: list[str]
    wait_s: float = 0.0


class Assignment(Message):
    """One try, with all that its process needs to know."""

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
    version_number: int = 1
    map_length: int | None = None


class ClaimAnswer(Message):
    assignments: list[Assignment] = []
    kill: list[int] = []
    state: Literal["active", "draining", "lost"] = "active"


Outcome = Literal["success", "failed", "failed_for_good", "skipped", "cannot_start"]


class Report(Message):
    """What became of a try. ``started`` may be left out when the exit is at hand: an exit implies it."""

    token: str
    kind: Literal["started", "exit"]
    age_s: float = 0.0  # since it happened
    outcome: Outcome | None = None  # of an exit
    ran_s: float | None = None  # from start to exit
    exit_code: int | None = None  # negative: the signal that ended the process
    reason: str | None = None  # for people; required when the outcome is not success
    error_types: list[str] = []  # qualified class names of the exception, most derived first
    result: bytes | None = None  # JSON of the return value, stored as XCom return_value


class Reports(Message):
    """POST /reports. All or nothing; sending a batch again is harmless (a report of a past epoch changes nothing)."""

    reports: list[Report]


class ReportsAnswer(Message):
    accepted: int
    refused: list[str] = []  # why a report cannot be stored (result too large, token forged); the others are stored
    refused_at: list[int] = []  # positions in the batch of the refused ones, in the order of ``refused``


class LogChunk(Message):
    token: str
    offset: int  # bytes of this try's log before the chunk; a chunk that is there already is dropped
    data: bytes


class Logs(Message):
    """POST /logs"""

    chunks: list[LogChunk]


REFUSED_LOG = -1  # in LogsAnswer.offsets: the try is not current or its token is no good; send no more of this log


class LogsAnswer(Message):
    """For each chunk, up to where its log is stored now: go on from there. Less than the chunk's offset means a gap: fill it."""

    offsets: list[int]


class XComPush(Message):
    """POST /xcom with the try token as bearer"""

    key: str
    value: bytes  # JSON


class Progress(Message):
    """POST /progress with the try token as bearer: what the try is doing, for people. The newest replaces the one before."""

    label: str
    done: int
    total: int
    detail: dict[str, Any] = {}


class XComPull(Message):
    """POST /xcom/pull with the try token as bearer. ``map_index`` null: all instances of a mapped task, as a list in map order."""

    task_id: str
    key: str = "return_value"
    map_index: int | None = None


class XComValue(Message):
    found: bool
    value: bytes | None = None  # JSON


# -- DAG files ---------------------------------------------------------------------------------------------------------


class FileSeen(Message):
    file: str  # path inside the bundle, / as separator
    fingerprint: str


class FilesSeen(Message):
    """POST /files/seen: the whole bundle as it is now; files that are not listed are gone."""

    bundle: str
    files: list[FileSeen]


class FilesLease(Message):
    """POST /files/lease: files that changed since they were parsed, least recently parsed first, leased files skipped."""

    service_id: int
    bundle: str
    limit: int
    lease_s: float


class FilesLeased(Message):
    files: list[FileSeen]


class ParsedFile(Message):
    """POST /files/parsed: the result of one file."""

    bundle: str
    file: str
    fingerprint: str
    seconds: float
    specs: list[str] = []  # DagSpec JSON
    code_hash: str | None = None  # of the archive that the DAGs need
    error: str | None = None  # the traceback
    error_line: int | None = None


class ParsedAnswer(Message):
    need_code: bool = False  # the archive is not known: PUT /code/{hash} and send again
    errors: list[str] = []  # specs that were refused, e.g. a dag_id that another file has
