"""Runs one Spark application for one try, wherever its driver runs, and says how it ended. A copy of this file travels with the
try, so it needs nothing but Python's standard library.

The try and its driver share a folder. The files in it are the whole protocol; each appears at once and whole:

    order.json    what to run, written before anything is started
    claim.json    by whom it is run. The maker of this file has the try; a second driver of it ends at once
    beat          a number that grows while the driver lives, every second
    stop          the application is to end; with a word in it at once, because it was taken for dead
    application.json, ui.json, told.json   what a Python application says of itself: its id, its Spark UI, and what it raised
    stages.json   what its stages take, again and again (:mod:`evenflow.spark.status`)
    result.json   the seal: the application is dead, and this is how it ended

A driver that cannot write its beat for :data:`BEAT_WITHIN_S` kills its application, by its own clock. So a reader on another host
that has seen no beat for a little longer knows that nothing runs any more, though there is no seal: the host may have lost power.
Processes that a driver starts die with it, and a driver that a cluster started ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import resource
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

ORDER, CLAIM, BEAT, STOP, TOLD, RESULT = "order.json", "claim.json", "beat", "stop", "told.json", "result.json"
APPLICATION, UI, STAGES, OUTPUT = "application.json", "ui.json", "stages.json", "output.log"
STATUS_MODULE, LOG_MODULE = "status.py", "event_log.py"  # beside this file

BEAT_EVERY_S = 1.0  # a write of a few bytes
BEAT_WITHIN_S = 15.0  # how long the folder may be out of reach: a file server that fails over takes some seconds
LOOK_EVERY_S = 0.2  # at the process and at `stop`: what a person takes for at once
GRACE_S = 8.0  # from SIGTERM to SIGKILL: Spark's own shutdown hooks take one or two seconds
CANCEL_S = 60.0  # for the command that ends an application elsewhere: a JVM and some requests
MOST_OUTPUT = 4 * 1024 * 1024  # bytes that are kept in the file: people do not read more
MOST_TAIL = 8 * 1024  # bytes of its end in the seal: the last stack trace
MOST_TEXT = 8 * 1024  # characters of an exception: a JVM's has its whole chain of causes
MOST_FRAMES = 10  # of the author's in a traceback
TAKEN = "the SparkContext was stopped before the application ended, and not by it: the master has ended the application, as a rule"
RUN_INSIDE = "--inside"  # the argument by which this file is the application's first module

# By these a pyspark has said for itself that it speaks with a Connect server, and by the last where its JVM listens.
OF_CONNECT = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_REMOTE")
_OF_ITS_STARTER = (*OF_CONNECT, "PYSPARK_GATEWAY")
_PR_SET_PDEATHSIG = 1
_OURS = re.compile(r"(^|/)(pyspark|py4j|runpy\.py)(/|$)|<frozen runpy>")


def main(arguments: list[str]) -> int:
    if arguments[0] == RUN_INSIDE:
        run_inside(Path(arguments[1]))
        return 0
    folder = Path(arguments[0])
    order = read(folder / ORDER)
    if order is None:
        sys.stderr.write(f"There is no order in {folder}: the try that this driver was started for is over.\n")
        return 1
    if not claim(folder, {**identity(), "remote": order["remote"]}, str(order["key"])):
        sys.stderr.write("Another driver has this try, or it is over; this one ends.\n")
        return 0
    return ApplicationRun(folder, order).run()


def claim(folder: Path, who: Mapping[str, Any], key: str) -> bool:
    """Returns whether ``who`` has the try now. Only one process can make a link, on network file systems too; if the answer is
    lost, the count of names says which process it was.
    """
    part = folder / f".{CLAIM}.{uuid.uuid4().hex}"
    write_part(part, {**who, "key": key})
    try:
        with suppress(OSError):
            os.link(part, folder / CLAIM)
        return os.stat(part).st_nlink == 2
    finally:
        part.unlink()


def identity() -> dict[str, Any]:
    """What tells this process from all others of all hosts."""
    return {"host": os.uname().nodename, "system": system(), "pid": os.getpid(), "born": born(os.getpid())}


def system() -> str:
    """The running kernel and the namespace of process ids in it: only within one of them a pid means the same."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def born(pid: int) -> int | None:
    """When the process was started, in ticks since the boot; None when it does not exist, or has ended and awaits its parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class ApplicationRun:
    """One that has the try."""

    def __init__(self, folder: Path, order: dict[str, Any]) -> None:
        self._folder, self._order = folder, order
        self._began = time.time()
        self._parent = os.getppid() if order.get("owned") else None
        self._stopped: str | None = None  # why it is ended from outside
        self._beats, self._beat_at, self._late = 0, time.clock_gettime(time.CLOCK_BOOTTIME), False
        self._notes: dict[str, str] = {}
        self._tail = b""
        self._hidden = Hidden(order)

    def run(self) -> int:
        """Returns the exit code for the process that started this: that of the application."""
        signal.signal(signal.SIGTERM, self._asked)
        self._beat()
        work = self._folder / "work"
        work.mkdir(exist_ok=True)
        output = os.open(self._folder / OUTPUT, os.O_WRONLY | os.O_CREAT, 0o600)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_ITS_STARTER)}
        env = {**inherited, **self._order.get("env", {})}
        submit, log = [spark_submit(env)], None
        if self._order.get("logged"):
            keep = partial(write, self._folder / STAGES, lasting=False)
            log = _beside_this_file(LOG_MODULE).LogTelling(self._folder, env, _beside_this_file(STATUS_MODULE), keep)
            submit += log.options
        child = subprocess.Popen(
            [*submit, *self._order["arguments"]] if self._order.get("spark", True) else self._order["arguments"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=work,
            env=env,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        copying = threading.Thread(target=self._copy, args=(child.stdout, output), daemon=True)
        copying.start()
        code = self._watch(child)
        kill_group(child.pid, signal.SIGKILL)  # what the application itself has left
        copying.join(GRACE_S)
        if log is not None:
            self._notes |= log.end()
        self._seal(code)
        return code if code >= 0 else 128 - code

    def _asked(self, signum: int, frame: FrameType | None) -> None:
        self._stopped = self._stopped or "its driver was told to end"

    def _watch(self, child: subprocess.Popen[bytes]) -> int:
        cancelling: threading.Thread | None = None
        ending_since: float | None = None
        while True:
            try:
                return child.wait(LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                pass
            self._beat()
            self._look_for_reasons()
            if self._stopped is None:
                continue
            if self._late:
                kill_group(child.pid, signal.SIGKILL)
            elif cancelling is None:
                cancelling = threading.Thread(target=self._cancel, daemon=True)
                cancelling.start()
            elif cancelling.is_alive():
                continue
            elif ending_since is None:
                ending_since = time.monotonic()
                kill_group(child.pid, signal.SIGTERM)
            elif time.monotonic() - ending_since > GRACE_S:
                kill_group(child.pid, signal.SIGKILL)

    def _look_for_reasons(self) -> None:
        said = None
        with suppress(OSError):  # out of reach: the beat tells for how long
            said = read(self._folder / STOP)
        if said:
            self._stopped, self._late = self._stopped or "it was taken for dead, as its host stood still", True
        if self._stopped is not None:
            return
        if said is not None:
            self._stopped = "it was asked to end"
        elif self._parent is not None and os.getppid() != self._parent:
            self._stopped = "the process of the cluster that ran its driver is gone"

    def _beat(self) -> None:
        """Kills the application at once if the beat could not be written for too long: the try may soon take it for dead."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)  # with the time for which the host was suspended
        if now - self._beat_at > BEAT_WITHIN_S:
            self._stopped, self._late = f"its folder could not be written for {BEAT_WITHIN_S:g} s, or its host stood still", True
        elif self._beats and now - self._beat_at < BEAT_EVERY_S:
            return
        try:
            self._beats += 1
            write(self._folder / BEAT, self._beats, lasting=False)
        except OSError:
            return
        self._beat_at = now

    def _cancel(self) -> None:
        """An application elsewhere is ended by a command, which names it."""
        command, application = self._order.get("cancel"), self._notes.get("application_id")
        if not command or not application:
            return
        words = [word.replace("{application_id}", application) for word in command]
        with suppress(OSError, subprocess.TimeoutExpired):  # then the application is not proven dead, and the next try says so
            if subprocess.run(words, capture_output=True, timeout=CANCEL_S, check=False).returncode == 0:
                self._notes["cancelled"] = application

    def _copy(self, said: BinaryIO, output: int) -> None:
        patterns = {name: re.compile(pattern) for name, pattern in self._order.get("notes", {}).items()}
        kept = 0
        with open(output, "wb", buffering=0) as out:
            for line in self._hidden.masked_lines(said):
                self._tail = (self._tail + line)[-MOST_TAIL:]
                for name, pattern in patterns.items():
                    if found := pattern.search(line.decode(errors="replace")):
                        self._notes[name] = found[1]
                if kept + len(line) <= MOST_OUTPUT:
                    with suppress(OSError):  # a full disk: the application would wait for ever for a reader that gave up
                        kept += out.write(line)

    def _seal(self, code: int) -> None:
        said = read(self._folder / TOLD)
        told = said or {}
        write(
            self._folder / RESULT,
            {
                "exit_code": code,
                "stopped": self._stopped,
                "silent": said is None and bool(self._order.get("inside")),
                "error": told.get("error"),
                "application_id": read(self._folder / APPLICATION) or self._notes.get("application_id"),
                "notes": self._notes,
                "peak_memory_bytes": max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, told.get("peak_bytes", 0)),
                "elapsed_s": round(time.time() - self._began, 3),
                "tail": self._tail.decode(errors="replace"),
            },
        )


class Hidden:
    """Masks the secrets of an order, in the forms that it lists, in what is kept of the application."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        forms = [form.encode("utf-8", "surrogatepass") for form in order.get("hidden", ())]
        self._any = re.compile(b"|".join(map(re.escape, forms))) if forms else None
        self._overlap = max(map(len, forms), default=1) - 1

    def mask(self, data: bytes) -> bytes:
        return data if self._any is None else self._any.sub(b"***", data)

    def masked_lines(self, said: BinaryIO) -> Iterator[bytes]:
        """Long lines come in parts; what may be the begin of a secret at the end of a part is kept for the next one."""
        begun = b""
        for part in iter(lambda: said.readline(MOST_TAIL), b""):
            begun += part
            until = len(begun)
            if not part.endswith(b"\n"):
                last = 0 if self._any is None else max((found.end() for found in self._any.finditer(begun)), default=0)
                until = max(last, len(begun) - self._overlap, 0)
            yield self.mask(begun[:until])
            begun = begun[until:]
        yield self.mask(begun)

    def mask_told(self, told: dict[str, Any]) -> dict[str, Any]:
        """Of an exception as :func:`describe` tells it."""
        return {**told, "text": self._mask_text(told["text"]), "frames": [self._mask_text(frame) for frame in told["frames"]]}

    def _mask_text(self, text: str) -> str:
        return self.mask(text.encode("utf-8", "replace")).decode(errors="replace")


# -- inside of a Python application ------------------------------------------------------------------------------------


def run_inside(folder: Path) -> None:
    """Runs the application in this process, as if it had been started by itself; its exception is told before the process ends."""
    die_with_parent()
    order = read(folder / ORDER)
    assert order is not None
    telling = _ApplicationTelling(folder)
    sys.argv = [order["application"], *order["application_arguments"]]
    sys.path[0] = os.path.dirname(order["application"])
    told: dict[str, Any] = {}
    try:
        runpy.run_path(order["application"], run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        told["error"] = Hidden(order).mask_told(describe(error))
        frames = "".join(told["error"]["frames"])
        sys.stderr.write(f"Without Spark's own frames:\n{frames}{type(error).__name__}: {without_frames(told['error']['text'])}\n")
        _close_connect()
        sys.exit(1)
    finally:
        if "error" not in told and _context_was_taken():
            told["error"] = {"class": "SparkContextStopped", "bases": [], "text": TAKEN, "condition": None, "frames": []}
        telling.end()
        told["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        write(folder / TOLD, told)


def _context_was_taken() -> bool:
    """Whether another has stopped the SparkContext. An application that continues after each error does not notice it."""
    active = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_active_spark_context", None)
    with suppress(Exception):  # its JVM is gone
        return active is not None and active._jsc is not None and bool(active._jsc.sc().isStopped())
    return False


def _close_connect() -> None:
    """A client of Spark Connect that is open asks its server once more when the process ends, for ten minutes if that is gone."""
    connect = sys.modules.get("pyspark.sql.connect.session")
    session = connect.SparkSession._default_session if connect is not None else None
    with suppress(Exception):  # the reason of the failure is another one
        if session is not None:
            session.client.close()


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: its class and those above it, its text (with what the JVM says), and the author's frames of it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _OURS.search(f.filename) and f.filename != __file__]
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    try:
        text = str(error)
    except Exception:  # what the JVM has to be asked for, and that may be gone
        text = "its text was with the JVM, which is gone"
    return {
        "class": type(error).__name__,
        "bases": [kind.__name__ for kind in type(error).__mro__[1:-1]],
        "text": text[:MOST_TEXT],
        "condition": condition() if callable(condition) else None,
        "frames": traceback.format_list(frames[-MOST_FRAMES:]),
    }


def without_frames(text: str) -> str:
    """What the JVM says, without where in Spark it was."""
    return "\n".join(line for line in text.splitlines() if not re.match(r"\s+(at |\.\.\. \d+ more)", line))


class _ApplicationTelling:
    """Of an application in Python: its id and where its Spark UI is, as soon as it has them, and then what its stages take."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stages: Any = None
        threading.Thread(target=self._find, daemon=True).start()

    def end(self) -> None:
        if self._stages is not None:
            self._stages.end()

    def _find(self) -> None:
        while True:
            context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
            active = getattr(context, "_active_spark_context", None)
            if active is not None and getattr(active, "_jsc", None) is not None:
                with suppress(Exception):  # it stops just now, or the folder is gone: then the figures are not needed
                    self._tell(active)
                return
            time.sleep(LOOK_EVERY_S)

    def _tell(self, active: Any) -> None:
        app_id = active.applicationId
        write(self._folder / APPLICATION, app_id)
        if active.uiWebUrl is not None:
            base = active.getConf().get("spark.ui.proxyBase", "")
            write(self._folder / UI, {"application_id": app_id, "url": active.uiWebUrl, "proxy_base": base}, lasting=False)
        status = _beside_this_file(STATUS_MODULE)
        self._stages = status.Telling(active, lambda *told: write(self._folder / STAGES, status.kept(*told), lasting=False))


def _beside_this_file(name: str) -> Any:
    """A module that travels with this one, by its path: nothing that the application imports is called as it is."""
    spec = importlib.util.spec_from_file_location(f"_evenflow_driver_{Path(name).stem}", Path(__file__).with_name(name))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- processes and files -----------------------------------------------------------------------------------------------


def die_with_parent() -> None:
    """Makes Linux kill this process when its parent dies, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_group(pid: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def spark_submit(env: dict[str, str]) -> str:
    """Of SPARK_HOME, else of this Python's pyspark, else of the PATH; ``env`` is told which."""
    spec = importlib.util.find_spec("pyspark")
    home = env.get("SPARK_HOME") or (os.path.dirname(spec.origin) if spec and spec.origin else None)
    if home is None:
        return "spark-submit"
    env["SPARK_HOME"] = home
    return os.path.join(home, "bin", "spark-submit")


def read(path: Path) -> Any:
    """None while it is not there."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def write(path: Path, value: Any, lasting: bool = True) -> None:
    """Whole or not at all, and only for this user's eyes; ``lasting`` over a loss of power."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    write_part(part, value, lasting)
    part.replace(path)


def write_part(part: Path, value: Any, lasting: bool = True) -> None:
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        json.dump(value, out)
        out.flush()
        if lasting:
            os.fsync(out.fileno())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
