"""Twelve tasks of agents, answered by the tools alone: `python -m tools.agents [--write] [TASK…]`.

Prints the transcript of each, with the number of calls and characters; `--write` writes them into
`docs/agents-transcripts.md`. Some need the compiler for an H100 (`jaxsight targets install cuda`).
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path

from tools.agents.tasks import (
    MOST_CALLS,
    MOST_CHARACTERS,
    PAGE,
    PROGRAMS,
    TASKS,
    Transcript,
    page,
    transcript,
)


def run(names: list[str]) -> list[Transcript]:
    """The transcripts of tasks."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for program in PROGRAMS.glob("*.py"):
            shutil.copy(program, root)
        for task in TASKS:
            if not names or task.file in names:
                made = asyncio.run(transcript(task, root))
                figures = f"{made.calls} calls, {made.characters} characters"
                print(made.text, f"=== {task.title}: {figures}\n", sep="\n", flush=True)
                found.append(made)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    found = run(given.names)
    over = [each for each in found if each.calls > MOST_CALLS or each.characters > MOST_CHARACTERS]
    print(f"{len(found)} tasks, {len(over)} with too many calls or characters")
    if given.write:
        PAGE.write_text(page(found), encoding="utf-8")


main()
