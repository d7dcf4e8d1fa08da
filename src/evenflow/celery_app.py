"""The Celery app of workers that run tries: ``celery -A evenflow.celery_app worker -Q etl -c 16``.

Its one task gets a try that a launcher has sent. A worker of Celery starts a worker of Evenflow beside it, which runs all of its
tries; a place in Celery's pool only hands over the epoch, and waits. So Celery's concurrency counts tries, and what an author may
rely on is the same as on any other worker.
"""

from __future__ import annotations

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
from evenflow.worker.handing import follow_intake, hand

AGAIN_S = 2.0  # until a worker that has died is started again
ANEW_S = 60.0  # for which a message waits for it, until another worker of Celery is to have the message
_LOOK_S = 0.1
_ADDRESS = "EVENFLOW_CELERY_HANDED_AT"  # for the processes of the pool

logger = get_logger(__name__)


def make_app(settings: Settings) -> Celery:
    """Raises :class:`SettingsError` where no broker is named."""
    if settings.celery_broker is None:
        raise SettingsError("No broker is named. Set EVENFLOW_CELERY_BROKER, to the URL that the launcher has, too.")
    broker = settings.celery_broker.get_secret_value()
    is_redis = broker.startswith(("redis", "sentinel"))
    if is_redis:  # when Redis goes, Celery would end over messages that it cannot give back; they are hints, and are sent again
        redis.Channel.do_restore = False
    made = Celery("evenflow", broker=broker)
    made.conf.update(
        task_ignore_result=True,
        # No message waits at a worker that is busy: it takes one when it has a place, or has one a place that is not acknowledged.
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=is_redis,
        broker_transport_options={"ack_emulation": False} if is_redis else {},  # Redis forgets what it has given: two requests less
        broker_connection_retry_on_startup=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,  # the tries go on
    )
    return made


app = make_app(load_settings())


def run(epoch: object) -> None:
    """A try of this epoch is there. Returns when it has ended, or if it is none of this worker's: anybody who may write to the
    broker may say so.
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
        except OSError as error:  # it is being started again
            if time.monotonic() > until:
                raise Reject(f"no worker takes it: {error}", requeue=True) from error
            time.sleep(_LOOK_S)
        else:
            if became is not Handed.ENDED:
                logger.info("try %s: %s", epoch, became)
            return


class HandOver(Request):  # type: ignore[misc]  # Celery has no types
    """Of one message. When it is done with, its place is free, and Celery's loop looks for the next one at once: what happens in a
    pool of threads it would only hear of when it looks by itself, a second later.
    """

    def acknowledge(self) -> None:
        super().acknowledge()
        _wake()


def _wake() -> None:
    """Celery's loop, from another thread. By itself it looks whenever something comes, or after ten seconds."""
    loop: Any = get_event_loop()
    if loop is not None:
        loop.call_soon(bool)


app.task(run, name=CELERY_TASK, Request=HandOver)


class Companion:
    """The worker of Evenflow that a worker of Celery starts, and starts again when it dies. One whose worker of Celery dies
    takes nothing more, finishes what it has, for its drain timeout at most, and ends.
    """

    def __init__(self, settings: Settings, *, name: str, slots: int, queues: list[str]) -> None:
        settings.check_destination()
        self._folder = Path(tempfile.mkdtemp(prefix="evenflow-"))  # which other users cannot enter
        self.address = str(self._folder / "handed")
        self._own = os.pidfd_open(os.getpid())
        given = {"slots": slots, "queues": tuple(queues), "handed_at": self.address, "handed_by": self._own}
        service = settings.for_service(name=name, **given)
        self._environment = service.environment(ServiceKind.WORKER, {**os.environ, **settings.connection_environment()})
        self._ending, self._changing = threading.Event(), threading.Lock()
        self._process = self._start()

    def keep(self) -> None:
        """Returns when it is ready, and keeps it so. Raises :class:`SystemExit` when it ends before that: its log says why."""
        while not Path(self.address).exists():
            if (code := self._process.poll()) is not None:
                self._clean()
                raise SystemExit(code or 1)
            time.sleep(_LOOK_S)
        threading.Thread(target=self._restart, name="evenflow worker", daemon=True).start()

    def end(self) -> None:
        """It finishes what it has, for its drain timeout at most."""
        with self._changing:  # none is started again from now on
            self._ending.set()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()
        self._clean()

    def _start(self) -> subprocess.Popen[bytes]:
        Path(self.address).unlink(missing_ok=True)
        # in a session of its own: what a terminal tells Celery it hears from Celery
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
                self._process = self._start()

    def _clean(self) -> None:
        os.close(self._own)
        shutil.rmtree(self._folder, ignore_errors=True)


def _heed(consumer: Any, queues: list[str]) -> None:
    """For ever: no messages are taken while the worker beside it may claim nothing, which would lose time here."""
    was_open = True
    while True:
        try:
            for is_open in follow_intake(os.environ[_ADDRESS]):
                for queue in queues if is_open != was_open else ():
                    consumer.call_soon(consumer.add_task_queue if is_open else consumer.cancel_task_queue, queue)
                was_open = is_open
        except OSError:  # it is being started again
            pass
        time.sleep(_LOOK_S)


def _tell_live(notifier: Notifier) -> None:
    """For ever. Of this process, and not of Celery's loop: that stands still while a broker is away, or while a pool of one place
    is taken.
    """
    while True:
        time.sleep(TELL_S)
        notifier.send(LIVE)


def _begin(sender: Any, **_: Any) -> None:
    """Before the pool is there, whose processes have to know where to hand tries over."""
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
    """It is told to end by a signal, upon which its loop does not look by itself. In another thread, as this one may hold what it
    would wait for.
    """
    threading.Thread(target=_wake, name="end", daemon=True).start()


worker_init.connect(_begin, weak=False)
worker_shutting_down.connect(_end_soon, weak=False)
