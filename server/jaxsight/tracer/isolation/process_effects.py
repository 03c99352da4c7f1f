"""Effects of a chunk outside of its module, recorded to undo them and to repeat them without a run.

They are changes of the process's state (`process_state`), and belong to one file: every request
starts from the process's baseline, and each reused chunk applies its effects with its bindings.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from jaxsight.tracer.compat import config, devices
from jaxsight.tracer.isolation.code_origins import equal
from jaxsight.tracer.isolation.mutable_contents import GONE
from jaxsight.tracer.isolation.process_state import (
    ENVIRONMENT,
    OPTIONS,
    PARTS,
    Part,
    State,
    Values,
)

_serials = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Effects:
    """Changes to each of `PARTS`.

    The serial number distinguishes the effects of a run of a chunk from all others.
    """

    changes: tuple[Values, ...]
    serial: int = field(default_factory=lambda: next(_serials))

    def same_as(self, effects: Effects) -> bool:
        """Return whether both make the same changes."""
        return equal(self.changes, effects.changes)

    def apply(self) -> None:
        """Apply the changes to the current process."""
        for part, values in zip(PARTS, self.changes, strict=True):
            for name, value in values.items():
                part.write(name, value)


def capture() -> State:
    """Return the current state of the process."""
    return tuple(part.read() for part in PARTS)


def since(before: State) -> tuple[Effects | None, State]:
    """Return the changes since `before` (`None` if there are none), and the current state."""
    after = capture()
    changes = tuple(
        _changes(part, old, new) for part, old, new in zip(PARTS, before, after, strict=True)
    )
    return (Effects(changes) if any(changes) else None), after


def of_options(before: Values) -> Effects | None:
    """Return the changes of JAX's options since `before`, or `None` if there are none."""
    changes = _changes(OPTIONS, before, OPTIONS.read())
    return Effects(tuple(changes if part is OPTIONS else {} for part in PARTS)) if changes else None


def restore(state: State) -> None:
    """Restore the process to `state`."""
    for part, now, then in zip(PARTS, capture(), state, strict=True):
        for name, value in _changes(part, now, then).items():
            part.write(name, value)


def heed_variables(before: State, jax_imported: bool) -> None:
    """Apply environment variables set since `before` to JAX.

    This has the same result as if JAX had been imported, or its backend created, afterwards.
    """
    changed = _changes(ENVIRONMENT, before[PARTS.index(ENVIRONMENT)], ENVIRONMENT.read())
    for variable, text in changed.items():
        if not isinstance(text, str):
            continue
        # XLA's flags count until there is a backend, JAX's variables until it is imported.
        if variable == "XLA_FLAGS":
            devices.heed_flags(text)
        elif not jax_imported and (option := config.from_variable(variable, text)):
            config.update(*option)


def _changes(part: Part, before: Values, after: Values) -> Values:
    if equal(before, after):
        return {}
    changed: Values = {}
    for name, value in after.items():
        old = before.get(name, GONE)
        if old is not value and not equal(old, value) and part.counts(old, value):
            changed[name] = value
    for name, old in before.items():
        if name not in after and part.counts(old, GONE):
            changed[name] = GONE
    return changed
