"""A `with` statement in a dry run survives a context that cannot be entered."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType

from jaxsight.tracer.dry_runs.branches import LeftBranch
from jaxsight.tracer.dry_runs.values.unknown import is_unknown, shaped_like

Manager = contextlib.AbstractContextManager[object]


class SurvivingContext(contextlib.AbstractContextManager[object]):
    """A context manager; if it cannot be entered, its value is unknown."""

    def __init__(
        self,
        failed: Callable[[BaseException], None],
        manager: Callable[[], Manager],
        template: object,
    ) -> None:
        """Create it.

        Args:
            failed: called with the error, which it raises if it is not to be survived.
            manager: makes the context manager.
            template: the structure of its target.
        """
        self._failed, self._make, self._template = failed, manager, template
        self._entered: Manager | None = None

    def __enter__(self) -> object:
        try:
            manager = self._make()
            value = manager.__enter__()
        except BaseException as error:  # noqa: BLE001 - user code
            self._failed(error)
            return shaped_like(self._template)
        self._entered = manager
        return shaped_like(self._template) if is_unknown(value) else value

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
