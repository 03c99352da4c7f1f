"""What `sourcerize` gives: the text of a module, with what belongs to it and is not in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from jaxsight.sourcerizer import constants as arrays


class Source(str):
    """The text of a module.

    It is a string like any other; `save` also writes the file of arrays that the module reads.
    """

    constants: dict[str, np.ndarray[Any, Any]]
    """Arrays that the module reads from the file beside it (`constants="npz"`); empty where the
    text holds all.
    """

    passed: dict[str, Any]
    """What the caller of the written function passes in by keyword, because no text can hold it:
    callbacks, structures of results, and arrays with `constants="argument"`.
    """

    proofs: tuple[str, ...]
    """What showed that the text is the function: `"jaxpr"`, and where it was run beside it with
    equal results `"eagerly"`, `"under jit"`, `"under grad"`."""

    not_run: str
    """Why it was not run; empty where it was."""

    def __new__(
        cls,
        text: str,
        constants: Mapping[str, Any] | None = None,
        passed: Mapping[str, Any] | None = None,
        proofs: tuple[str, ...] = (),
        not_run: str = "",
    ) -> Self:
        made = super().__new__(cls, text)
        made.constants = {name: arrays.plain(value) for name, value in (constants or {}).items()}
        made.passed = dict(passed or {})
        made.proofs = proofs
        made.not_run = not_run
        return made

    def save(self, path: str | Path) -> None:
        """Writes the module to `path`, and its arrays beside it: those of `layer.py` to
        `layer.npz`.
        """
        path = Path(path)
        if self.constants:
            np.savez(path.with_suffix(".npz"), **self.constants)  # type: ignore[arg-type]
        path.write_text(self, encoding="utf-8")
