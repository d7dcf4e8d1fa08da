"""The kernel's control groups: where this worker may make some, and the files that limit their processes.

A kernel has them in one tree (cgroup2) or in a tree for each controller (cgroup1). Trees belong to the administrator: a worker
makes groups only under its own group. In cgroup2 it may do so only if that group was delegated to it, as systemd does by
``Delegate=yes``, or is the root of what it can see. There a group whose subgroups have limits may not have processes itself. So
before its first group the worker moves the processes of its own group, itself and the services beside it, to a subgroup
(``evenflow-services``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from evenflow.core.model import Resources
from evenflow.errors import EvenflowError
from evenflow.worker.limits import GROUPS_REMOVED, TRY_PROCESSES

SERVICES = "evenflow-services"
PERIOD_US = 100_000  # for a group's share of processors: the kernel's own default
_DELEGATED = ("user.delegate", "trusted.delegate")  # attributes by which systemd delegates a group
_LOOKS = 100  # at the processes of a group that forks
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_CONTROLLERS = ("pids", "memory", "cpu")  # in this order groups end: first what lets nothing new begin


class CannotLimit(EvenflowError):
    """This worker cannot make a group with the wanted limits; ``str(error)`` says why."""


@dataclass(frozen=True, slots=True)
class Tree:
    """``bases`` has by controller the group under which groups are made; in cgroup2 it is the same for all. A group has at most
    ``processes``, of which each thread counts as one.
    """

    bases: dict[str, Path]
    unified: bool
    processes: int = TRY_PROCESSES

    def folders(self, name: str, resources: Resources) -> list[Path]:
        """Returns the folders of the group with this name and these limits. It has one for processors in any case: a try with many
        processes gets no larger share of busy ones than this worker, which has to beat beside it. Raises :class:`CannotLimit`.
        """
        for controller, limit in (("memory", resources.memory), ("cpu", resources.cpu)):
            if limit is not None and controller not in self.bases:
                raise CannotLimit(f"its cgroup has no controller {controller!r}: {_start_it()}")
        controllers = [each for each in _CONTROLLERS if each in self.bases and (each != "memory" or resources.memory is not None)]
        return list(dict.fromkeys(self.bases[controller] / name for controller in controllers))

    def make(self, folder: Path, resources: Resources) -> None:
        """Makes a group. Raises :class:`CannotLimit`, :class:`OSError`."""
        if self.unified:
            _open_to_groups(folder.parent)
        folder.mkdir(exist_ok=True)
        for file, text, is_needed in _limits(self.unified, resources, self.processes):
            if self.bases.get(file.partition(".")[0]) != folder.parent:
                continue
            if (folder / file).exists():
                (folder / file).write_text(text)
            elif is_needed:
                folder.rmdir()
                raise CannotLimit(f"its kernel has no {file}")

    def kills(self, folder: Path) -> int:
        """Returns how many of its processes the kernel has killed because the group was out of memory."""
        return _counted(folder / ("memory.events" if self.unified else "memory.oom_control"), "oom_kill")

    def refusals(self, folder: Path) -> int:
        """Returns how many processes and threads the kernel has refused because the group had as many as it may have."""
        return _counted(folder / "pids.events", "max")

    def peak(self, folder: Path) -> int | None:
        """Returns the highest memory use in bytes, or None if the kernel does not report it (cgroup2 before Linux 5.19)."""
        text = _read(folder / ("memory.peak" if self.unified else "memory.max_usage_in_bytes"))
        return int(text) if text else None


def find_tree(processes: int = TRY_PROCESSES, proc: Path = Path("/proc/self")) -> Tree:
    """Returns where this process may make groups, which have at most ``processes`` each. Raises :class:`CannotLimit`."""
    own = {}
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    one: Tree | None = None
    many: dict[str, Path] = {}
    for kind, root, mount, options in _mounts(proc):
        if kind == "cgroup2" and "" in own and (folder := _below(mount, root, own[""])) is not None:
            bases = dict.fromkeys(_read(folder / "cgroup.controllers").split(), _without_services(folder))
            one = Tree(bases, unified=True, processes=processes)
        for controller in {*_CONTROLLERS} & options & own.keys():
            if kind == "cgroup" and (folder := _below(mount, root, own[controller])) is not None:
                many[controller] = folder
    tree = one if one is not None and "memory" in one.bases else Tree(many, unified=False, processes=processes)
    if not tree.bases:
        raise CannotLimit(
            "this system shows it no cgroup with a controller for memory: start it where /sys/fs/cgroup is mounted and writable "
            "(in a container: docker run --privileged --cgroupns=private)"
        )
    for base in tree.bases.values():
        _check_ours(base, tree)
    return tree


def end_group(folder: Path) -> bool:
    """Kills the processes of a group, which gets no others meanwhile, and removes it. Returns False while something is still
    ending.
    """
    if not folder.exists():
        return True
    if (most := folder / "pids.max").exists():
        most.write_text("0")
    killed: set[int] = set()
    for _ in range(_LOOKS):
        known = len(killed)
        for pid in processes(folder):  # those above first: what makes groups ends before they are looked at
            if pid not in killed:
                killed.add(pid)
                _kill(pid, folder)
        if len(killed) == known:
            break
    return remove_group(folder)


def _kill(pid: int, folder: Path) -> None:
    """Kills a process of this group, or of one below; where the kernel can, all of them."""
    if (folder / "cgroup.kill").exists():
        (folder / "cgroup.kill").write_text("1")
    else:  # cgroup1, and cgroup2 before Linux 5.14
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def remove_group(folder: Path) -> bool:
    """Removes a group, with groups that its processes have made. Returns False if it has processes, or more such groups than are
    removed in one look.
    """
    left = ((above, name) for above, name, is_left in _groups_below(folder) if is_left)
    for above, name in islice(left, GROUPS_REMOVED):
        with contextlib.suppress(OSError):  # then the folder itself is not empty
            os.rmdir(name, dir_fd=above)
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def processes(folder: Path) -> Iterator[int]:
    """Yields the pids of its processes, then those of groups below."""
    yield from map(int, _read(folder / "cgroup.procs").split())
    for above, name, is_left in _groups_below(folder):
        if not is_left:
            with contextlib.suppress(OSError), open(os.open(f"{name}/cgroup.procs", os.O_RDONLY, dir_fd=above)) as file:
                yield from map(int, file.read().split())


def _groups_below(folder: Path) -> Iterator[tuple[int, str, bool]]:
    """Yields each group below one twice, before and after those in it: the descriptor of the group above, its name, whether it is
    left. A task may make groups that are deeper than the stack, than any path, and than there are descriptors.
    """
    try:
        here = os.open(folder, _DIRECTORY)
    except FileNotFoundError:
        return
    path: list[str] = []  # from the folder to here
    todo = [_subfolders(here)]  # of each group on this path
    try:
        while todo[-1] or path:
            if not todo[-1]:
                there = os.open("..", _DIRECTORY, dir_fd=here)
                os.close(here)
                here = there
                todo.pop()
                yield here, path.pop(), True
                continue
            name = todo[-1].pop()
            with contextlib.suppress(OSError):  # it is gone, or another user's
                os.chmod(name, 0o700, dir_fd=here)
            yield here, name, False
            with contextlib.suppress(OSError):
                there = os.open(name, _DIRECTORY, dir_fd=here)
                os.close(here)
                here = there
                path.append(name)
                todo.append(_subfolders(here))
    except FileNotFoundError:
        return  # where this was is removed meanwhile: the next look sees what is left
    finally:
        os.close(here)


def _subfolders(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _limits(unified: bool, resources: Resources, processes: int) -> Iterator[tuple[str, str, bool]]:
    """Yields files, their text, and whether the limit is required, in the order in which the kernel takes them. Swap is off,
    because it would slow down the whole host.
    """
    yield "pids.max", f"{processes}", True
    memory, quota = f"{resources.memory}", f"{round((resources.cpu or 0) * PERIOD_US)}"
    if resources.memory is not None and unified:
        yield from (("memory.max", memory, True), ("memory.swap.max", "0", False), ("memory.oom.group", "1", False))
    elif resources.memory is not None:
        yield from (("memory.limit_in_bytes", memory, True), ("memory.memsw.limit_in_bytes", memory, False))
    if resources.cpu is not None and unified:
        yield "cpu.max", f"{quota} {PERIOD_US}", True
    elif resources.cpu is not None:
        yield from (("cpu.cfs_period_us", f"{PERIOD_US}", True), ("cpu.cfs_quota_us", quota, True))


def _open_to_groups(base: Path) -> None:
    """Lets the groups below have their own limits."""
    control = base / "cgroup.subtree_control"
    wanted = {*_CONTROLLERS} & set(_read(base / "cgroup.controllers").split())
    if not (missing := wanted - set(control.read_text().split())):
        return
    text = " ".join(f"+{controller}" for controller in sorted(missing))
    for _ in range(_LOOKS):
        try:
            control.write_text(text)
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        (base / SERVICES).mkdir(exist_ok=True)
        for pid in _read(base / "cgroup.procs").split():
            with contextlib.suppress(ProcessLookupError):
                (base / SERVICES / "cgroup.procs").write_text(pid)
    control.write_text(text)


def _mounts(proc: Path) -> Iterator[tuple[str, str, Path, set[str]]]:
    """Yields for each mounted tree its kind, the group that is its root there, the folder and its options."""
    for line in (proc / "mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            root, mount = before.split(" ")[3:5]
            yield kind, root, Path(mount), set(options.split(","))


def _below(mount: Path, root: str, group: str) -> Path | None:
    """Returns the folder of a group, or None if the mount does not contain it."""
    path, top = Path(group), Path(root)
    return mount / path.relative_to(top) if path.is_relative_to(top) else None


def _without_services(folder: Path) -> Path:
    return folder.parent if folder.name == SERVICES else folder


def _check_ours(base: Path, tree: Tree) -> None:
    """Raises :class:`CannotLimit` unless this worker may make groups there."""
    if not os.access(base, os.W_OK):
        raise CannotLimit(f"its cgroup {base} is not its own: {_start_it()}")
    if tree.unified and os.geteuid() == 0 and not _is_given_away(base):
        raise CannotLimit(f"its cgroup {base} belongs to systemd: {_start_it()}")


def _start_it() -> str:
    who = "--user " if os.geteuid() else ""
    return f"start it in a unit with Delegate=yes, or by: systemd-run {who}--scope -p Delegate=yes evenflow worker"


def _is_given_away(base: Path) -> bool:
    """Returns whether a group was delegated. Other users can only write to what they were given. Root can write anywhere, also
    where systemd owns the tree.
    """
    if not (base.parent / "cgroup.procs").exists():
        return True
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(base, name) == b"1":
                return True
    return False


def _counted(file: Path, what: str) -> int:
    """Returns N of the line ``what N`` of the file, 0 if it has none."""
    return next((int(line.split()[1]) for line in _read(file).splitlines() if line.startswith(f"{what} ")), 0)


def _read(file: Path) -> str:
    """Returns the file's text, or an empty one if it does not exist or is not readable."""
    try:
        return file.read_text()
    except OSError:
        return ""
