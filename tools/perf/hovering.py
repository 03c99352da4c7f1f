"""How long hovers take in a server that runs: of what is known, while a tracer is busy, after
edits, in long files.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.perf.editor import Editor, milliseconds
from tools.perf.measures import Figure, Goal
from tools.perf.plain_jax import WarmJax
from tools.perf.programs import (
    ADAM,
    BUSY,
    FACTOR,
    SMALL,
    TRANSFORMER,
    Program,
    edited,
    lengthened,
)

BARE = [sys.executable, str(Path(__file__).with_name("bare_server.py"))]

_WARM_UPS = 3
"""Edits before those that count."""

_PAUSE = 0.1
"""Seconds between two edits: what the server does behind an answer is then over."""


def known(root: Path, runs: int) -> list[Figure]:
    """Hovers of a function that was traced before, against those of a bare server; then with the
    tracer at work.
    """
    ours: list[float] = []
    floor: list[float] = []
    with Editor(root) as editor, Editor(root, BARE) as bare:
        for each in (editor, bare):
            each.initialize()
            each.open(SMALL.file, SMALL.text)
            for _ in range(_WARM_UPS):
                each.hover(SMALL.file, SMALL.heading[4:])
        for _ in range(runs * 10):
            ours.append(_hover(editor, SMALL))
            floor.append(_hover(bare, SMALL))
        busy = _while_tracing(editor, runs)
    return [
        Figure(
            "hover, known", "ms", ours, floor, "bare server", [Goal(2), Goal(10, percentile=95)]
        ),
        Figure(
            "hover, known, while another function is traced",
            "ms",
            busy,
            floor,
            "bare server",
            [Goal(10, percentile=95)],
        ),
    ]


def _while_tracing(editor: Editor, runs: int) -> list[float]:
    """Hovers of a known function, all of them while another one's trace is awaited."""
    editor.open(BUSY.file, BUSY.text)
    samples: list[float] = []
    text = FACTOR
    for number in range(max(runs // 10, 1)):
        new = edited(number)
        editor.replace(BUSY.file, text, new)
        text = new
        tracing = editor.begin_hover(BUSY.file, BUSY.heading[4:])
        while not editor.answered(tracing):
            samples.append(_hover(editor, SMALL))
            time.sleep(0.01)
        editor.answer(tracing)
    return samples


def _hover(editor: Editor, program: Program) -> float:
    begin = time.perf_counter()
    editor.hover(program.file, program.heading[4:])
    return milliseconds(begin)


def after_edits(root: Path, runs: int) -> list[Figure]:
    """Hovers of functions whose bodies were just edited, against tracing the same in a warm
    process.
    """
    return [
        _after_edits(root, runs, "a small function", SMALL),
        _after_edits(root, runs, "optax adam update", ADAM),
        _after_edits(root, max(runs // 2, 3), "gradient of 12 layers", TRANSFORMER),
    ]


def _after_edits(root: Path, runs: int, what: str, program: Program) -> Figure:
    ours: list[float] = []
    plain: list[float] = []
    with Editor(root) as editor, WarmJax(program) as jax:
        editor.initialize()
        editor.open(program.file, program.text)
        editor.hover(program.file, program.heading[4:])
        editing = Editing(editor, program.file, program)
        for _ in range(runs + _WARM_UPS):
            ours.append(editing.edit_and_hover())
            time.sleep(_PAUSE)
            plain.append(jax.trace(program.definition.replace(FACTOR, editing.factor)))
    return Figure(
        f"hover after an edit: {what}",
        "ms",
        ours[_WARM_UPS:],
        plain[_WARM_UPS:],
        "make_jaxpr",
        [Goal(10, factor=1.3)],
    )


class Editing:
    """A document that is edited again and again, each time to a text that it never had."""

    def __init__(self, editor: Editor, name: str, program: Program) -> None:
        self._editor = editor
        self._name = name
        self._program = program
        self._edits = 0
        self.factor = FACTOR

    def edit_and_hover(self) -> float:
        """Milliseconds from an edit in the function's body to the answer to a hover of it."""
        begin = time.perf_counter()
        self.edit()
        self.hover()
        return milliseconds(begin)

    def edit(self) -> None:
        """Edit the function's body."""
        old, self.factor = self.factor, edited(self._edits)
        self._edits += 1
        self._editor.replace(self._name, old, self.factor)

    def hover(self) -> None:
        """Hover, again while the answer describes the text before the edit."""
        self._editor.hover(self._name, self._program.heading[4:])


def long_files(root: Path, runs: int) -> list[Figure]:
    """The same edit in a short and in a long file."""
    samples: dict[int, list[float]] = {50: [], 5000: []}
    with Editor(root) as editor:
        editor.initialize()
        documents: list[tuple[int, Editing]] = []
        for lines in samples:
            name = f"lines_{lines}.py"
            editor.open(name, lengthened(SMALL.text, lines))
            editor.hover(name, SMALL.heading[4:])
            documents.append((lines, Editing(editor, name, SMALL)))
        for number in range(runs + _WARM_UPS):
            for lines, editing in documents:
                taken = editing.edit_and_hover()
                time.sleep(_PAUSE)
                if number >= _WARM_UPS:
                    samples[lines].append(taken)
    return [
        Figure(
            "hover after an edit in a file of 5 000 lines",
            "ms",
            samples[5000],
            samples[50],
            "50 lines",
            [Goal(factor=1.2)],
        )
    ]
