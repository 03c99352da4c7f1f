"""A `with` statement in a dry run survives a context that cannot be entered."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from jaxsight.tracer.dry_runs.branches import LeftBranch
from jaxsight.tracer.dry_runs.values.unknown import is_unknown, shaped_like

Manager = contextlib.AbstractContextManager[object]


@dataclass(slots=True)
class SurvivingContext(contextlib.AbstractContextManager[object]):
    """A context manager; if it cannot be entered, its value is unknown."""

    failed: Callable[[BaseException], None]
    """Called with the error, which it raises if it is not to be survived."""
    make: Callable[[], Manager]
    template: object
    """The structure of its target."""
    _entered: Manager | None = None

    def __enter__(self) -> object:
        try:
            manager = self.make()
            value = manager.__enter__()
        except BaseException as error:  # noqa: BLE001 - user code
            self.failed(error)
            return shaped_like(self.template)
        self._entered = manager
        return shaped_like(self.template) if is_unknown(value) else value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        entered = self._entered
        if isinstance(error, LeftBranch):  # the context sees that its body ends
            kind = error = traceback = None
        return entered.__exit__(kind, error, traceback) if entered is not None else None
