"""Lists that are longer than one answer."""

from __future__ import annotations

import pytest

from evenflow.cli import remote
from evenflow.cli.remote import read_pages
from evenflow.contracts.rest.record import Page
from tests.cli.command_line import CommandLine


@pytest.mark.parametrize(
    ("limit", "asked", "more"),
    [(3, [(3, "0")], True), (10, [(4, "0"), (4, "4"), (2, "8")], False), (9, [(4, "0"), (4, "4"), (1, "8")], True)],
)
async def test_a_list_is_read_answer_by_answer(
    monkeypatch: pytest.MonkeyPatch, limit: int, asked: list[tuple[int, str]], more: bool
) -> None:
    """R-UX1: up to the limit, and no further."""
    monkeypatch.setattr(remote, "PAGE", 4)
    requests = []

    async def read(limit: int, cursor: str = "0") -> Page[int]:
        requests.append((limit, cursor))
        until = int(cursor) + limit
        return Page(
            items=list(range(10))[int(cursor) : until], limit=limit, next=str(until) if until < 10 else None, more=until < 10
        )

    page = await read_pages(read, limit)
    assert (page.items, page.limit, page.more) == (list(range(limit)), limit, more)
    assert requests == asked


def test_all_tasks_of_a_run_can_be_seen(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-UX1: however many answers they take; a list that is cut says how many there are."""
    monkeypatch.setattr(remote, "PAGE", 4)
    shown = cli.show("tasks", "list", "steered/unlucky", "--limit", "3")
    assert "... and 7 more; see fewer with --task or --state, or all with --limit 10" in shown
    assert "... and 6 more; see fewer with --task or --state, or all with --limit 9" in cli.show(
        "tasks", "list", "steered/unlucky", "--limit", "3", "--state", "success"
    )
    listed = cli.ask("tasks", "list", "steered/unlucky", "--limit", "10")
    assert [task["map_index"] for task in listed["tasks"]] == [-1, *range(9)]
    assert not listed["more"]
    assert "has no task 'chek'. Did you mean 'check'?" in cli.refused("tasks", "list", "steered/unlucky", "--task", "chek")
    assert "Did you mean 'success'?" in cli.refused("tasks", "list", "steered/unlucky", "--state", "sucess")
