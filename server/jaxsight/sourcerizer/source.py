"""The result of `sourcerize`: the text of a module, with the values that it does not contain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from jaxsight.sourcerizer.values import constants as arrays


class Source(str):
    """The text of a module, as a string.

    `save` also writes the file of arrays that the module reads.
    """

    constants: dict[str, np.ndarray[Any, Any]]
    """Arrays that the module reads from the file next to it (`constants="npz"`); empty if the text
    contains all.
    """

    passed: dict[str, Any]
    """Values that the caller passes by keyword, because they cannot be written as source:
    callbacks, structures of results, and arrays with `constants="argument"`.
    """

    proofs: tuple[str, ...]
    """The checks that proved the text: `"jaxpr"`, and `"eagerly"`, `"under jit"` and `"under grad"`
    if it ran so with the original's results.
    """

    not_run: str
    """Why it was not run; empty if it was."""

    def __new__(
        cls,
        text: str,
        constants: Mapping[str, Any] | None = None,
        passed: Mapping[str, Any] | None = None,
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
