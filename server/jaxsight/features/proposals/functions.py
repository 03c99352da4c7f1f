"""Which functions are worth proposing example inputs for without being asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from jaxsight.examples.binding import Signature
from jaxsight.examples.jax_use import JaxUse
from jaxsight.queries.documents import Document, Subject
from jaxsight.source.functions import Function
from jaxsight.source.module import ModuleChunk, PlacedFunction

MOST = 40
"""Functions of one file, a choice: those of most files; each costs a trace."""
_TESTS = re.compile(r"test_.*|.*_test|conftest|tests")
_RUNS = re.compile(
    r"_?(?:main|run|cli|app|fit|train|evaluate|benchmark|demo)"
    r"|_?(?:train_and|run|main|benchmark)_\w+|\w+_loop|test[A-Z]\w*"
)
"""Names of functions that are there to be run: they loop over data, print and save."""
_LOOPS = re.compile(
    r"\b(?:for\b.+\bin\b.*(?:epoch|step|iteration|loader|batches|dataset|tqdm|trange)|while\s+True)"
)
"""The head of a loop over training steps or data."""


def worth_proposing(document: Document, subjects: Sequence[Subject]) -> Iterator[PlacedFunction]:
    """Yield the functions that use JAX and have no example inputs, at most `MOST`.

    Functions that are there to be run are none of them, such as tests, `main` and training loops;
    nor are special methods other than `__call__`.
    """
    module = document.module
    if _TESTS.fullmatch(PurePath(document.path).stem):
        return
    jax_use = JaxUse.of(module)
    if jax_use.uses is None:
        return
    having = {(subject.chunk.first_line, subject.name) for subject in subjects}
    count = 0
    for placed in module.functions:
        chunk, function = placed
        name = function.qualname
        if (chunk.first_line, name) in having or function.refused:
            continue
        if module.defining[name] is not chunk:  # a later one has its proposals
            continue
        if not Signature(function).required or not jax_use.by(chunk, function):
            continue
        if runs_a_program(chunk, function):
            continue
        yield placed
        count += 1
        if count == MOST:
            return


def runs_a_program(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a function is there to be run, or is called by Python itself."""
    name = function.qualname.rpartition(".")[2]
    if name.startswith("__") and name != "__call__":
        return True
    if _RUNS.fullmatch(name):
        return True
    lines = chunk.text.split("\n")[function.body_start.line : function.range.end.line + 1]
    return any(_LOOPS.search(line) for line in lines)
