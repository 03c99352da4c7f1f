"""A written module, with what is known of it."""

from __future__ import annotations

import functools
import linecache
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import locations
from jaxsight_source.compat.staging import Program
from jaxsight_source.jaxprs.same.comparison import same_jaxpr
from jaxsight_source.jaxprs.same.difference import Difference
from jaxsight_source.jaxprs.same.liveness import pairs
from jaxsight_source.options import SourceOptions
from jaxsight_source.proof.running import NOT_RUN, Ran
from jaxsight_source.text.statements import Line
from jaxsight_source.values import constants as arrays
from jaxsight_source.writing.writer import Placeholder


class Source(str):
    """The text of a module, as a string.

    `save` also writes the file of arrays that the module reads.
    """

    constants: dict[str, np.ndarray]
    """Arrays that the module reads from the file next to it (`constants="npz"`); empty if the text
    contains all.
    """

    passed: dict[str, object]
    """Values that the caller passes by keyword, because they cannot be written as source:
    callbacks, structures of results, and arrays with `constants="argument"`.
    """

    proofs: tuple[str, ...]
    """The checks that proved the text: `"jaxpr"`, and `"eagerly"`, `"under jit"` and `"under grad"`
    if it ran so with the original's results. For text that was written from StableHLO also
    `"stablehlo"`, if it lowers to the same, and `"bits"`, if both ran and have the same results.
    """

    not_run: str
    """Why it was not run; empty if it was."""

    def __new__(
        cls,
        text: str,
        constants: Mapping[str, object] | None = None,
        passed: Mapping[str, object] | None = None,
        proofs: tuple[str, ...] = (),
        not_run: str = "",
    ) -> Self:
        source = super().__new__(cls, text)
        source.constants = {name: arrays.plain(value) for name, value in (constants or {}).items()}
        source.passed = dict(passed or {})
        source.proofs = proofs
        source.not_run = not_run
        return source

    def save(self, path: str | Path) -> None:
        """Write the module to `path`, and its arrays next to it: `layer.npz` for `layer.py`."""
        path = Path(path)
        if self.constants:
            np.savez(path.with_suffix(".npz"), **self.constants)  # type: ignore[arg-type]
        path.write_text(self, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Written:
    """A module that defines a function, with its metadata."""

    text: str
    name: str
    lines: tuple[Line, ...]
    """The lines of the text, each with its equations."""
    placeholders: tuple[Placeholder, ...]
    """Additional keyword arguments of the written function, for values without an expression."""
    stored: dict[str, object]
    """Arrays that are not in the text, by name: in the companion file, or passed as arguments."""
    bound: tuple[str, ...]
    """Names of the primitives that are written with `Primitive.bind`, once for each equation."""
    equations: int
    """Number of equations written; those of a shared function count once."""
    options: SourceOptions
    program: Program
    """The program that was written: the original's; without derivative rules for `"primal"`, and
    in the pretty style `readable`.
    """
    again: Program | None = None
    """The program of the text, if it was compared, and is the same."""
    ran: Ran = NOT_RUN
    """How it was run and compared with the original."""
    as_stablehlo: tuple[str, ...] = ()
    """How it was compared with the StableHLO that it was written from: `Source.proofs`."""

    def differs(self, again: object) -> Difference | None:
        """Return the first difference of the text's program from the one that was written.

        Return None if they are the same program. In the pretty style, a sum of cotangents is an
        addition.
        """
        options = self.options
        return same_jaxpr(
            self.program,
            again,
            through_jits=options.inline,
            orders=options.orders,
            sums=options.style == "pretty",
        )

    def links(self) -> Iterator[tuple[int, str, Equation]]:
        """Yield lines of the text, from 0, with the path and the equation of the program on each.

        Equations of inlined calls have no counterpart, so that there are no links then.
        """
        if self.again is None or self.options.inline:
            return
        file = file_of(self.name)
        for path, equation, counterpart in pairs(self.program, self.again):
            location = next((at for at in locations(counterpart) if at.file == file), None)
            if location is not None:
                for line in range(location.line, max(location.end_line, location.line) + 1):
                    yield line - 1, path, equation

    @property
    def passed(self) -> dict[str, object]:
        """The values that a caller passes to the written function by keyword."""
        passed = {placeholder.name: placeholder.value for placeholder in self.placeholders}
        return passed | (self.stored if self.options.constants == "argument" else {})

    @property
    def source(self) -> Source:
        """The text, with the values that it does not contain."""
        stored = self.stored if self.options.constants == "npz" else {}
        proofs = ("jaxpr", *self.ran.ways, *self.as_stablehlo)
        return Source(self.text, stored, self.passed, proofs, self.ran.skipped)


def file_of(name: str) -> str:
    """Return the file that the code of a written function's module names as its own."""
    return f"<sourcerized {name}>"


def load(written: Written) -> Callable[..., Any]:
    """Return the function that a written module defines.

    The arguments in `written.passed` are bound, and stored arrays are read from a temporary file.
    """
    namespace: dict[str, Any] = {"__name__": f"sourcerized_{written.name}"}
    path = file_of(written.name)
    linecache.cache[path] = (len(written.text), None, written.text.splitlines(True), path)
    code = compile(written.text, path, "exec")
    reads = written.options.constants == "npz" and bool(written.stored)
    with tempfile.TemporaryDirectory() if reads else nullcontext("") as folder:
        if folder:
            namespace["__file__"] = f"{folder}/{written.name}.py"
            written.source.save(namespace["__file__"])
        exec(code, namespace)  # noqa: S102 - its own text
    function: Callable[..., Any] = namespace[written.name]
    return functools.partial(function, **written.passed) if written.passed else function
