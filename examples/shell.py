"""Shell commands as tasks: the last line that one prints is its result."""

from __future__ import annotations

from evenflow import BashOperator, dag, task


@task.bash
def largest_files(folder: str, count: int) -> str:
    """A function that returns the command. Its output is in the log of the task."""
    return f"find {folder!r} -type f -printf '%s %p\\n' | sort -rn | head -n {count}"


@task
def tell(line: str) -> None:
    print(f"The smallest of them: {line}")


@dag(tags=["example"])
def shell(folder: str = "/etc/default", count: int = 3) -> None:
    there = BashOperator(task_id="is_it_there", bash_command='test -d "$FOLDER"', env={"FOLDER": folder}, append_env=True)
    largest = largest_files(folder, count)
    there >> largest
    tell(largest)


shell()
