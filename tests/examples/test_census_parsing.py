"""What the census reads from a source file, and what it makes of files that nobody can read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from census import listing, parsing


def imports_of(source: str, module: str = "pkg.mod", is_package: bool = False) -> list[tuple[str, str]]:
    facts = parsing.parse(source.encode(), module, is_package)
    return sorted((target, when) for target, when, _ in facts.imports)


def test_counts() -> None:
    source = b'"""Doc."""\nimport os\n\n\nclass A:\n    def f(self): ...\n\n    async def g(self):\n        def h(): ...\n'
    facts = parsing.parse(source, "m", False)
    assert (facts.status, facts.lines, facts.functions, facts.classes, facts.docstring) == ("ok", 9, 3, 1, True)
    assert facts.imports == [("os", "import", 2)]


def test_lines_of_a_file_without_a_last_newline() -> None:
    assert [parsing.parse(text, "m", False).lines for text in (b"", b"a", b"a\n", b"a\nb")] == [0, 1, 1, 2]


def test_kinds_of_import() -> None:
    assert imports_of("import a, b.c as d") == [("a", "import"), ("b.c", "import")]
    assert imports_of("from a.b import c, d as e") == [("a.b.c", "import"), ("a.b.d", "import")]
    assert imports_of("from a import *") == [("a", "import")]


def test_when_an_import_runs() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import for_types
    def f():
        import for_types_too
else:
    import at_run_time
try:
    import tried
except ImportError:
    import instead
finally:
    import anyway
class A:
    import in_a_class
    def f(self):
        import in_a_method
def g():
    class B:
        import in_a_class_of_a_function
for x in y:
    import looped
else:
    import after_the_loop
with x:
    import guarded
match x:
    case 1:
        import matched
import typing
if typing.TYPE_CHECKING:
    import for_types_as_well
"""
    assert dict(imports_of(source)) == {
        "typing.TYPE_CHECKING": "import",
        "for_types": "typing",
        "for_types_too": "typing",
        "at_run_time": "import",
        "tried": "import",
        "instead": "import",
        "anyway": "import",
        "in_a_class": "import",
        "in_a_method": "lazy",
        "in_a_class_of_a_function": "lazy",
        "looped": "import",
        "after_the_loop": "import",
        "guarded": "import",
        "matched": "import",
        "typing": "import",
        "for_types_as_well": "typing",
    }


@pytest.mark.parametrize(
    ("statement", "module", "is_package", "target"),
    [
        ("from . import x", "a.b.c", False, "a.b.x"),
        ("from . import x", "a.b", True, "a.b.x"),
        ("from .x import y", "a.b.c", False, "a.b.x.y"),
        ("from .. import x", "a.b.c", False, "a.x"),
        ("from ..x import y", "a.b", True, "a.x.y"),
        ("from . import *", "a.b", False, "a"),
        ("from .. import x", "a.b", False, ".."),  # climbs out: it can mean nothing
        ("from . import x", "a", False, "."),
        ("from ... import x", "a.b", True, "..."),
    ],
)
def test_relative_imports(statement: str, module: str, is_package: bool, target: str) -> None:
    assert [name for name, _ in imports_of(statement, module, is_package)] == [target]


def test_a_relative_import_in_a_file_that_is_no_module() -> None:
    facts = parsing.parse(b"from . import x", None, False)
    assert [target for target, _, _ in facts.imports] == ["."]


NULL_BYTES = "SyntaxError" if sys.version_info >= (3, 11, 4) else "ValueError"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"def f(:\n", "SyntaxError: "),
        (
            b"x = 1\0\n",
            f"{NULL_BYTES}: source code string cannot contain null bytes",
        ),
        (b"# coding: utf-8\nx = '\xf6'\n", "SyntaxError: (unicode error)"),
        (b"# coding: no-such-code\n", "SyntaxError: unknown encoding: no-such-code"),
        (b"  x = 1\n", "IndentationError: unexpected indent"),
        (b"(" * 10_000, "SyntaxError: too many nested parentheses"),
        (b"-" * 100_000 + b"1", "RecursionError: "),
    ],
)
def test_unreadable_files_are_rows_with_a_reason(source: bytes, reason: str) -> None:
    facts = parsing.parse(source, "m", False)
    assert facts.status == "error"
    assert facts.reason is not None
    assert facts.reason.startswith((reason, "MemoryError"))
    assert facts.imports == []


@pytest.mark.parametrize(
    "source",
    ["# -*- coding: latin-1 -*-\nx = 'ö'\n".encode("latin-1"), "\ufeffx = 'ö'\n".encode(), b"x = 'a\\d'\n", b""],
    ids=["cookie", "byte order mark", "bad escape", "empty"],
)
def test_odd_but_readable(source: bytes, recwarn: pytest.WarningsRecorder) -> None:
    assert parsing.parse(source, "m", False).status == "ok"
    assert not recwarn.list, "thousands of files would fill the log"


def test_files(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_bytes(b"#" * 101)
    (tmp_path / "small.py").write_bytes(b"#" * 100)
    assert parsing.read_facts(str(tmp_path / "small.py"), "small", False, max_bytes=100).status == "ok"
    large = parsing.read_facts(str(tmp_path / "large.py"), "large", False, max_bytes=100)
    assert (large.status, large.reason) == ("skipped", "larger than 100 bytes")
    gone = parsing.read_facts(str(tmp_path / "gone.py"), "gone", False)
    assert (gone.status, gone.reason) == ("error", "FileNotFoundError: No such file or directory")


def test_a_listing_is_complete_whatever_the_number_of_shards(tmp_path: Path) -> None:
    names = [
        "top.py",
        "pkg/__init__.py",
        "pkg/sub/mod.py",
        "pkg/__pycache__/x.py",
        "pkg/native.abi3.so",
        "pkg/data.txt",
        "a-b/c.py",
    ]
    for name in [*names, "site-packages/other.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    root = listing.Root(str(tmp_path), "packages", 0)
    for shards in (1, 3):
        found = sorted((file for part in range(shards) for file in listing.walk(root, part, shards)), key=lambda file: file.path)
        assert [(file.module, file.package, file.form, file.is_package) for file in found] == [
            (None, "a-b", "source", False),
            ("pkg", "pkg", "source", True),
            ("pkg.native", "pkg", "compiled", False),
            ("pkg.sub.mod", "pkg", "source", False),
            ("top", "top", "source", False),
        ]


def test_roots_are_the_standard_library_and_the_packages_each_once(tmp_path: Path) -> None:
    roots = listing.find_roots(extra=[str(tmp_path), str(tmp_path / "nowhere")])
    paths = [root.path for root in roots]
    assert roots[0].kind == "stdlib"
    assert str(Path(pytest.__file__).parents[1]) in paths
    assert paths[-1] == str(tmp_path)
    assert len(set(paths)) == len(paths)
