"""Look at programs that XLA has fused and scheduled, before it generates code.

This applies to JAX 0.10.2 to 0.12, on CPUs: XLA hands the scheduled program to a function of ours,
and an exception in it ends the compile. After that stage XLA only numbers stack frames anew, unless
there are `opt-barrier`s (as of `jax.checkpoint`): JAX 0.12 removes them then, and simplifies tuples
and fusions. `tests/compiler/tiers.py` compares.

Private API used: `jaxlib._xla`, which `jax.extend.xla.register_hlo_module_transformation` calls (a
compiler does not import JAX, see `jaxlib_alone`), and `jaxlib._hlo`, to read serialized programs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

try:
    from jaxlib import _hlo, _xla  # type: ignore[attr-defined]
except ImportError:
    _xla = None

_names = itertools.count()
_POST_SCHEDULER = 1
"""`PipelineStage.POST_SCHEDULER` in `jax/_src/xla_transform.py`."""


def can_look() -> bool:
    """Return whether this jaxlib hands scheduled programs to Python."""
    return hasattr(_xla, "register_xla_transform")


@contextlib.contextmanager
def looking(look: Callable[[bytes], None]) -> Iterator[None]:
    """Call `look` with every program that XLA schedules on the CPU while the body runs.

    If `look` raises, the compile ends with XLA's error. No other thread may compile meanwhile:
    jaxlib keeps the functions without a lock (0.12.0.1 had a segmentation fault).
    """
    name = f"jaxsight {next(_names)}"
    _xla.register_xla_transform(name, _POST_SCHEDULER, look)
    try:
        yield
    finally:
        _xla.clear_xla_transform(name, _POST_SCHEDULER)


def is_final(program: bytes) -> bool:
    """Return whether XLA leaves the instructions of a scheduled program as they are."""
    return b"opt-barrier" not in program


def module_of(program: bytes) -> Any:
    """Return XLA's module of a serialized program."""
    return _hlo.XlaComputation(program).get_hlo_module()
