"""How the class of a trigger is found."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenflow.sdk.triggers import find

SLOW = """
import sys
from evenflow.sdk.triggers import BaseTrigger
gate = sys.modules["gate_of_slow_trigger"]
gate.begun.set()
assert gate.goes_on.wait(20)

class Slow(BaseTrigger):
    pass
"""


def test_a_class_whose_module_another_thread_imports_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two triggers of one module that begin at once, the second found it half imported, and failed."""
    (tmp_path / "slow_trigger.py").write_text(SLOW)
    gate = SimpleNamespace(begun=threading.Event(), goes_on=threading.Event())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "gate_of_slow_trigger", gate)
    try:
        with ThreadPoolExecutor(2) as threads:
            first = threads.submit(find, "slow_trigger.Slow")
            assert gate.begun.wait(20)
            second = threads.submit(find, "slow_trigger.Slow")
            with pytest.raises(TimeoutError):
                second.result(timeout=0.05)
            gate.goes_on.set()
            assert first.result(20) is second.result(20)
    finally:
        gate.goes_on.set()
        sys.modules.pop("slow_trigger", None)
