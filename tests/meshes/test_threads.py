"""The threads about collectives: which are shown, where, and why they are there.

`programs.md` says what is in each thread. Lines are those that end with a comment `here`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jax
import pytest

from tests.corpora.meshes.corpus import Program
from tests.meshes.acceptance import Answer, ask

FOLDER = Path(__file__).parents[1] / "corpora" / "meshes" / "threads"
NEWEST = not jax.__version__.startswith("0.10.")


@dataclass(frozen=True)
class Thread:
    """What has to be shown of the function `f` of a file."""

    file: str
    kinds: tuple[str, ...]
    """The kinds of the collectives."""
    here: str = ""
    """A kind that has to be shown at a line marked `here`."""
    axes: tuple[str, ...] = ()
    """The axes of those collectives."""


THREADS = [
    Thread("issue_15048.py", ("all-gather", "all-gather", "all-reduce")),
    Thread("issue_15207.py", ("all-gather", "all-gather"), "all-gather", ("x", "y")),
    Thread("issue_18591.py", ("all-gather",), "all-gather", ("data", "model")),
    Thread("issue_20381.py", ()),
    Thread("issue_23936.py", ()),
    Thread("issue_25010.py", ("all-gather", "all-gather", "all-reduce"), "all-gather", ("fsdp",)),
]
REMATERIALIZED = ("issue_15207.py", "issue_18591.py")


async def _answer(file: str) -> Answer:
    (answer,) = await ask([Program(file, "f", "")], "cpu:8", FOLDER)
    assert not answer.error
    return answer


def _marked(file: str) -> set[int]:
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("here")}


@pytest.mark.parametrize("thread", THREADS, ids=lambda thread: thread.file)
async def test_the_collectives_of_a_thread_are_shown(thread: Thread) -> None:
    answer = await _answer(thread.file)
    assert sorted(each["kind"] for each in answer.collectives) == sorted(thread.kinds)
    assert all(each["inserted"] for each in answer.collectives)


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param(
            thread,
            marks=pytest.mark.xfail(
                NEWEST and thread.file == "issue_25010.py",
                reason="XLA names the `jax.checkpoint` of the gradient, not the product",
            ),
        )
        for thread in THREADS
        if thread.here
    ],
    ids=lambda thread: thread.file,
)
async def test_a_collective_is_shown_at_the_line_that_needs_it(thread: Thread) -> None:
    answer = await _answer(thread.file)
    shown = [each for each in answer.collectives if each["kind"] == thread.here]
    assert {axis for each in shown for axis in each["axes"]} == set(thread.axes)
    assert all(set(each["lines"]) & _marked(thread.file) for each in shown)


@pytest.mark.parametrize("file", REMATERIALIZED)
async def test_a_rematerialization_is_shown_at_the_value_that_is_replicated(file: str) -> None:
    answer = await _answer(file)
    (value,) = answer.rematerialized
    assert set(value["lines"]) & _marked(file)
