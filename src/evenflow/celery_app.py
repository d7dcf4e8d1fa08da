"""The Celery app of workers that run tries: ``celery -A evenflow.celery_app worker -Q etl -c 16``.

Its one task gets a try that a launcher has sent. A worker of Celery starts a worker of Evenflow beside it, which runs all of its
tries; a place in Celery's pool only hands over the epoch, and waits. So Celery's concurrency counts tries, and authors can rely on
the same things as on any other worker.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Reject
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down
from celery.utils.log import get_logger
from celery.worker.request import Request
from kombu.asynchronous import get_event_loop
from kombu.transport import redis

from evenflow.core.executors import CELERY_TASK
from evenflow.core.service import ServiceKind
from evenflow.errors import SettingsError
from evenflow.runtime.celery_places import places
from evenflow.runtime.readiness import LIVE, READY, TELL_S, Notifier
from evenflow.runtime.service_settings import command_of
from evenflow.runtime.settings import Settings, load_settings
from evenflow.worker.handed import Handed
from evenflow.worker.handing import ask_to_leave, follow_intake, hand

AGAIN_S = 2.0  # until a dead worker is restarted
ANEW_S = 60.0  # in which a message waits for it; then another worker of Celery should get the message
_LOOK_S = 0.1
_ADDRESS = "EVENFLOW_CELERY_HANDED_AT"  # for the processes of the pool

logger = get_logger(__name__)


def make_app(settings: Settings) -> Celery:
    """Raises :class:`SettingsError` without a broker."""
    if settings.celery_broker is None:
        raise SettingsError("No broker is named. Set EVENFLOW_CELERY_BROKER, to the URL that the launcher has, too.")
    broker = settings.celery_broker.get_secret_value()
    is_redis = broker.startswith(("redis", "sentinel"))
    if is_redis:  # when Redis goes, Celery would end over messages that it cannot give back; they are hints, and are sent again
        redis.Channel.do_restore = False
    made = Celery("evenflow", broker=broker)
    made.conf.update(
        task_ignore_result=True,
        # No message waits at a busy worker: it takes one when it has a place, or holds one that is not acknowledged.
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=is_redis,
        broker_transport_options={"ack_emulation": False} if is_redis else {},  # Redis forgets what it delivered: two requests less
        broker_connection_retry_on_startup=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,  # the tries continue
    )
    return made


def _app() -> Celery:
    """Ends the program with a sentence where a setting is wrong: Celery would show a trace."""
    try:
        return make_app(load_settings())
    except SettingsError as error:
        raise SystemExit(str(error)) from None


app = _app()


def run(epoch: object) -> None:
    """Handles the message that a try of this epoch exists. Returns when it has ended, or if this worker cannot have it: anybody who
    may write to the broker may send any number.
    """
    if not isinstance(epoch, int):
        logger.warning("a message that is of no try: %.100r", epoch)
        return
    until = time.monotonic() + ANEW_S
    while True:
        try:
            became = hand(os.environ[_ADDRESS], epoch)
        except ConnectionResetError:
            logger.warning("try %s: the worker that had it has died", epoch)
            return
        except OSError as error:  # it is being restarted
            if time.monotonic() > until:
                raise Reject(f"no worker takes it: {error}", requeue=True) from error
            time.sleep(_LOOK_S)
        else:
            if became is not Handed.ENDED:
                logger.info("try %s: %s", epoch, became)
            return


class HandOver(Request):  # type: ignore[misc]  # Celery has no types
    """One message. When it is done, its place is free, and Celery's loop looks for the next message at once; otherwise the loop
    would notice the end in a pool of threads only a second later.
    """

    def acknowledge(self) -> None:
        super().acknowledge()
        _wake()


def _wake() -> None:
    """Wakes Celery's loop from another thread. By itself it wakes when something arrives, or after ten seconds."""
    loop: Any = get_event_loop()
    if loop is not None:
        loop.call_soon(bool)


app.task(run, name=CELERY_TASK, Request=HandOver)


class Companion:
    """The worker of Evenflow that a worker of Celery starts, and restarts when it dies. If its worker of Celery dies, it takes
    nothing more, finishes its tries, for at most its drain timeout, and ends.
    """

    def __init__(self, settings: Settings, *, name: str, slots: int, queues: list[str]) -> None:
        settings.check_destination()
        self._folder = Path(tempfile.mkdtemp(prefix="evenflow-"))  # other users cannot enter it
        self.address = str(self._folder / "handed")
        self._own = os.pidfd_open(os.getpid())
        given = {"slots": slots, "queues": tuple(queues), "handed_at": self.address, "handed_by": self._own}
        service = settings.for_service(name=name, **given)
        self._environment = service.environment(ServiceKind.WORKER, {**os.environ, **settings.connection_environment()})
        self._ending, self._changing = threading.Event(), threading.Lock()
        self._process = self._start()

    def keep(self) -> None:
        """Returns when the worker is ready, and keeps it running. Raises :class:`SystemExit` when it ends before that: its log says
        why.
        """
        while not Path(self.address).exists():
            if (code := self._process.poll()) is not None:
                self._clean()
                raise SystemExit(code or 1)
            time.sleep(_LOOK_S)
        threading.Thread(target=self._restart, name="evenflow worker", daemon=True).start()

    def end(self) -> None:
        """Lets it finish its tries, for at most its drain timeout."""
        with self._changing:  # none is started from now on
            self._ending.set()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._clean()

    def _start(self) -> subprocess.Popen[bytes]:
        Path(self.address).unlink(missing_ok=True)
        # in a new session: Celery passes on what a terminal signals
        return subprocess.Popen(command_of(ServiceKind.WORKER), env=self._environment, pass_fds=[self._own], start_new_session=True)

    def _restart(self) -> None:
        while True:
            code = self._process.wait()
            if self._ending.wait(AGAIN_S):
                return
            with self._changing:
                if self._ending.is_set():
                    return
                logger.error("Evenflow's worker ended with %s; its tries begin anew elsewhere, and it is started again", code)
                try:
                    self._process = self._start()
                except OSError as error:  # too many processes or files for the moment
                    logger.error("Evenflow's worker cannot be started, and is tried again in %g s: %s", AGAIN_S, error)

    def _clean(self) -> None:
        os.close(self._own)
        shutil.rmtree(self._folder, ignore_errors=True)


def _heed(consumer: Any, queues: list[str]) -> None:
    """Takes no messages while the worker beside it may claim nothing, because they would lose time here. Runs until the process
    ends.
    """
    was_open = True
    while True:
        try:
            for is_open in follow_intake(os.environ[_ADDRESS]):
                for queue in queues if is_open != was_open else ():
                    consumer.call_soon(consumer.add_task_queue if is_open else consumer.cancel_task_queue, queue)
                was_open = is_open
        except OSError:  # it is being restarted
            pass
        time.sleep(_LOOK_S)


def _tell_live(notifier: Notifier) -> None:
    """Reports liveness of this process until it ends, independently of Celery's loop: that stands still while a broker is away, or
    while a pool of one place is taken.
    """
    while True:
        time.sleep(TELL_S)
        notifier.send(LIVE)


def _begin(sender: Any, **_: Any) -> None:
    """Starts the companion before the pool exists, because the pool's processes must know where to hand tries over."""
    notifier = Notifier(os.environ)
    queues = list(sender.app.amqp.queues.consume_from)
    try:
        slots = places(sender.pool_cls, sender.concurrency, sender.options.get("autoscale"))
    except SettingsError as error:
        raise SystemExit(str(error)) from None
    companion = Companion(load_settings(), name=sender.hostname, slots=slots, queues=queues)
    os.environ[_ADDRESS] = companion.address
    companion.keep()
    worker_shutdown.connect(lambda **_: companion.end(), weak=False)

    def ready(sender: Any, **_: Any) -> None:
        notifier.send(READY)
        threading.Thread(target=_tell_live, args=(notifier,), name="watchdog", daemon=True).start()
        threading.Thread(target=_heed, args=(sender, queues), name="intake", daemon=True).start()

    worker_ready.connect(ready, weak=False)


def _end_soon(**_: Any) -> None:
    """Wakes the loop after a signal to end, because it does not wake by itself, and has the worker beside it ask for nothing more,
    as Celery takes no more messages. Another thread does this, because this one may hold a lock that the call needs.
    """

    def end() -> None:
        _wake()
        with contextlib.suppress(OSError, KeyError):  # it is being restarted, or not there yet
            ask_to_leave(os.environ[_ADDRESS])

    threading.Thread(target=end, name="end", daemon=True).start()


worker_init.connect(_begin, weak=False)
worker_shutting_down.connect(_end_soon, weak=False)
