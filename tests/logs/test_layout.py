"""How objects become a text: pure, so that what several servers may leave behind is tried by the thousand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.api import limits
from evenflow.api.logs import layout
from evenflow.api.logs.layout import LogObject, Piece, lay_out, merged, parse, superfluous

WRITTEN = bytes(range(256)) * 2


def plain(start: int, end: int) -> LogObject:
    return LogObject(0, "1", start, end, end - start)


def gap(since: int, start: int) -> LogObject:
    return LogObject(0, "1", start, start, 7, since)


def bytes_of(item: LogObject) -> bytes:
    return b"<gap->\n" if item.since is not None else WRITTEN[item.start : item.end]


def text(objects: set[LogObject]) -> bytes:
    return b"".join(shown(piece) for piece in lay_out(objects).pieces)


def shown(piece: Piece) -> bytes:
    return piece.said if piece.object is None else bytes_of(piece.object)[piece.skip : piece.skip + piece.size]


@st.composite
def appended(draw: st.DrawFn) -> set[LogObject]:
    """What servers leave that take turns: each begins where what it knows of ends, or earlier."""
    objects, end = set(), 0
    for length in draw(st.lists(st.integers(1, 9), max_size=30)):
        start = max(0, end - draw(st.integers(0, 12)))
        end = max(end, start + length)
        objects.add(plain(start, start + length))
    return objects


@given(appended(), st.data())
def test_every_byte_is_shown_once_whatever_is_merged_and_deleted(objects: set[LogObject], data: st.DataObject) -> None:
    """R-EX3: two servers merge and delete by what each has seen, at any time."""
    end = max((item.end for item in objects), default=0)
    views = [set(objects), {item for item in objects if data.draw(st.booleans())}]
    for _ in range(data.draw(st.integers(0, 6))):
        view = views[data.draw(st.integers(0, 1))]
        groups = layout.runs(lay_out(view))
        group = data.draw(st.sampled_from(groups)) if groups else []
        if len(group) > 1 and all(piece.object in objects for piece in group):
            objects.add(merged(group))
            view.add(merged(group))
        objects -= set(superfluous(view))
        assert text(objects) == WRITTEN[:end]
    assert lay_out(objects).end == end


@given(appended())
def test_names_say_it_all(objects: set[LogObject]) -> None:
    for item in {*objects, gap(3, 9), LogObject(4, "7-2", 5, 9, 100, is_cut=True)}:
        assert parse(item.name, item.size) == item


def test_what_is_no_part_of_a_log_is_not_one() -> None:
    """Also an object that was not written to its end, where storage shows such."""
    for name, size in (("0.1.0-9.log", 4), ("0.1.0.log", 9), ("x", 1), ("0.1.3+5-9.log", 4), ("0.a.0-9.log", 9)):
        assert parse(name, size) is None


def test_what_comes_late_into_a_gap_is_not_shown() -> None:
    """Offsets of the text keep their meaning: who reads on would see nothing of it, or something twice."""
    objects = {plain(0, 3), gap(3, 100), plain(100, 110)}
    before = text(objects)
    assert before == WRITTEN[:3] + b"<gap->\n" + WRITTEN[100:110]
    assert text(objects | {plain(3, 50)}) == before
    assert text(objects | {plain(3, 105), plain(2, 4)}) == before


def test_what_somebody_has_deleted_is_said() -> None:
    objects = {plain(0, 3), plain(10, 12)}
    assert b"-- 7 bytes of this log are missing here" in text(objects)
    assert text(objects).endswith(WRITTEN[10:12])


def test_a_log_that_grows_has_few_objects() -> None:
    """Of 20,000 appended one by one some dozen are left at any time, and each byte was merged a few times."""
    objects: set[LogObject] = set()
    most = copied = 0
    for position in range(20_000):
        objects.add(LogObject(0, "1", position * 100, position * 100 + 100, 100))
        for group in layout.due(lay_out(objects)):
            new = merged(group)
            copied += new.size
            objects = (objects | {new}) - set(superfluous(objects | {new}))
        most = max(most, len(objects))
    assert most <= limits.LOG_LOOSE + 16
    assert copied <= 14 * 20_000 * 100


def test_what_does_not_grow_is_merged_up_to_a_size() -> None:
    sizes = [limits.LOG_OBJECT // 2, limits.LOG_OBJECT // 2, 10, 20, limits.LOG_OBJECT]
    start, objects = 0, set()
    for size in sizes:
        objects.add(LogObject(0, "1", start, start + size, size))
        start += size
    assert [[piece.size for piece in group] for group in layout.whole(lay_out(objects))] == [sizes[:2], sizes[2:4]]
