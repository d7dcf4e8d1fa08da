"""Helm, of which nothing has to be installed:

``python -m scripts.helm lint CHART``
``python -m scripts.helm package CHART FOLDER``
``python -m scripts.helm install RELEASE CHART KUBECONFIG VALUES ...``    the first values are installed, others are upgrades

It is Helm 4 itself as a shared library, in the package that ``requirements/helm.txt`` pins. That asks for a newer Python than
ours only for its Python part, which is not used: so it is put into ``build/helm``, beside the environment.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements" / "helm.txt"
FOLDER = ROOT / "build" / "helm"
INFO = 1  # of the severities of lint


class HelmFailed(Exception):
    """The message is Helm's."""


class Helm:
    """``kubeconfig`` says which cluster is asked; where none is, nobody is asked."""

    def __init__(self, kubeconfig: Path | None = None, namespace: str = "default") -> None:
        self._library = ctypes.CDLL(str(find_library()))
        self._library.helm_sdkpy_last_error.restype = ctypes.c_char_p
        self._handle = ctypes.c_ulonglong()
        texts = [namespace.encode(), str(kubeconfig).encode() if kubeconfig else None, None, b"{}"]
        self._check(self._library.helm_sdkpy_config_create(*texts, ctypes.byref(self._handle)))

    def lint(self, chart: Path) -> Any:
        return json.loads(self._answered(self._library.helm_sdkpy_lint, str(chart).encode()))

    def package(self, chart: Path, folder: Path) -> str:
        """The path of the archive."""
        return self._answered(self._library.helm_sdkpy_package, str(chart).encode(), str(folder).encode())

    def install(self, release: str, chart: Path, values: dict[str, Any]) -> None:
        self._release(self._library.helm_sdkpy_install, release, chart, values, {})

    def upgrade(self, release: str, chart: Path, values: dict[str, Any]) -> None:
        self._release(self._library.helm_sdkpy_upgrade, release, chart, values, {"server_side_apply": "false"})

    def _release(self, action: Any, release: str, chart: Path, values: dict[str, Any], more: dict[str, Any]) -> None:
        options = {"wait": False, "timeout_seconds": 60, "server_side_apply": "false", "disable_openapi_validation": True, **more}
        texts = (release, str(chart), json.dumps(values), "", json.dumps(options))
        self._answered(action, *(text.encode() for text in texts))

    def _answered(self, action: Any, *texts: bytes) -> str:
        answer = ctypes.c_char_p()
        self._check(action(self._handle, *texts, ctypes.byref(answer)))
        return (answer.value or b"").decode()

    def _check(self, result: int) -> None:
        if result:
            raise HelmFailed((self._library.helm_sdkpy_last_error() or b"unknown error").decode())


def find_library() -> Path:
    """Installed if it is not there."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    library = FOLDER / "helm_sdkpy" / "_lib" / f"linux-{machine}" / "libhelm_sdkpy.so"
    installed = FOLDER / "pins.txt"
    if not installed.exists() or installed.read_text() != PINS.read_text():
        options = ["--quiet", "--no-deps", "--require-hashes", "--ignore-requires-python", "--only-binary=:all:", "--upgrade"]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", FOLDER, "-r", PINS], check=True)
        installed.write_text(PINS.read_text())
    if not library.exists():
        raise HelmFailed(f"There is no Helm for this machine in {FOLDER}: {platform.machine()}")
    return library


def install(release: str, chart: str, kubeconfig: str, *values: str) -> None:
    if "HELM_DRIVER" not in os.environ:  # the library reads the environment that its process began with
        in_memory = {**os.environ, "HELM_DRIVER": "memory"}  # what is remembered of a release ends with the process
        os.execve(sys.executable, [sys.executable, "-m", "scripts.helm", *sys.argv[1:]], in_memory)
    helm = Helm(Path(kubeconfig))
    for number, file in enumerate(values):
        action = helm.upgrade if number else helm.install
        action(release, Path(chart), json.loads(Path(file).read_text(encoding="utf-8")))


def lint(chart: str) -> None:
    """Warnings and errors end it with 1."""
    said = Helm().lint(Path(chart))
    print(json.dumps(said, indent=2))
    if said["Errors"] or any(message["Severity"] > INFO for message in said["Messages"]):
        sys.exit(1)


def package(chart: str, folder: str) -> None:
    print(Helm().package(Path(chart), Path(folder)))


if __name__ == "__main__":
    chosen, *given = sys.argv[1:]
    try:
        {"lint": lint, "package": package, "install": install}[chosen](*given)
    except HelmFailed as failed:
        sys.exit(str(failed))
