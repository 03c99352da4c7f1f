"""Real bugs of JAX and XLA that fail on CPUs: by hand, and in a training step of a library.

Each script defines `main` and `inputs` and fails, run as a script, where the bug is.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

LEAST = 300
"""Equations that the training steps have at least."""


@dataclass(frozen=True, slots=True)
class Bug:
    """`check` is what `--check` names it by; `jaxlib` are versions that have it, of those that the
    test environments have.
    """

    name: str
    buried: str
    check: str
    jaxlib: tuple[str, ...]
    equations: int

    @property
    def by_hand(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def in_training(self) -> Path:
        return FOLDER / f"{self.buried}.py"


_EVERY = ("0.8.0", "0.10.2", "0.12.0.1")

MUSEUM = (
    Bug("jax39103", "jax39103_equinox", "differs:jit,eager", ("0.10.2",), 3),
    Bug("jax39103_transposed", "jax39103_flax", "differs:jit,eager", ("0.10.2",), 4),
    Bug("jax39257", "jax39257_optax", "crash:SIGSEGV", ("0.10.2",), 3),
    Bug("jax40412", "jax40412_diffrax", "crash:SIGSEGV", ("0.10.2",), 2),
    Bug("jax33348", "jax33348_equinox", "crash:SIGSEGV", ("0.8.0",), 5),
    Bug("xla35719", "xla35719_optax", "temp>1000000", _EVERY, 24),
)


def equations(file: Path) -> int:
    """The number of equations of a script's program, those of bodies included, calls inlined.

    Arrays of one number, such as `jnp.zeros(3)`, are not counted.
    """
    import jax

    module = runpy.run_path(str(file), run_name="counted")
    program = jax.make_jaxpr(module["main"])(*module["inputs"]())
    return sum(not _is_filled(equation) for equation in flat(program))


def _is_filled(equation: Any) -> bool:
    from jaxsight_source.compat.staging import is_literal

    return equation.primitive.name == "broadcast_in_dim" and is_literal(equation.invars[0])


def flat(program: Any, bodies: bool = True) -> Iterator[Any]:
    """The equations of a jaxpr and of all within it; calls only for what they call."""
    from jaxsight_source.compat.equations import called
    from jaxsight_source.compat.staging import is_jaxpr, opened

    for equation in opened(program).jaxpr.eqns:
        inner = called(equation)
        if inner is not None:
            yield from flat(inner, bodies)
            continue
        yield equation
        for value in equation.params.values() if bodies else ():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                if is_jaxpr(part):
                    yield from flat(part)
