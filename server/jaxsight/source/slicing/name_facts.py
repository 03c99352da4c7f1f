"""Facts about the names of a module, as they are before a chunk runs.

Chunks are judged in file order: most names that a chunk reads are bound above it.
"""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Iterator, Sequence

from jaxsight.source.analysis import library_functions
from jaxsight.source.analysis.name_effects import NameEffects
from jaxsight.source.bindings import Bindings
from jaxsight.source.statements import TopLevelStatement

BUILTINS = frozenset(dir(builtins))
PROVIDED = frozenset(
    {
        *BUILTINS,
        *("__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__path__"),
        *("__builtins__", "__annotations__", "__dict__", "__cached__"),
    }
)
"""Names that every module has."""
LAMBDA = ("lambda",)
"""The wrappers of a statement that binds a lambda."""

_ARRAYS = ("jax.numpy.", "jax.random.", "jax.nn.", "jax.lax.")
_PLAIN = library_functions.PLAIN_PACKAGES
_HEARS_REPORTS = re.compile(
    r"\b(?:showwarning|catch_warnings|simplefilter|filterwarnings|captureWarnings"
    r"|addHandler|setLoggerClass|basicConfig|dictConfig)\b"
)
"""Code that makes reports visible to other code."""
_FINALIZES = re.compile(r"\b__del__\b|\bweakref\b")
"""Code that runs when an object is destroyed."""


class NameFacts:
    """Facts about names, given the chunks that were judged so far."""

    def __init__(self, statements: Sequence[TopLevelStatement], bindings: Bindings) -> None:
        self.statements = statements
        self.bindings = bindings
        self.judged = 0
        """The number of judged chunks."""
        self.acting: set[int] = set()
        """The judged chunks that act."""
        self.left_out: set[int] = set()
        """The judged chunks that are skipped."""
        self.overridden = any(
            statements[index].name_effects.packages[0] not in _PLAIN for index in bindings.stars
        )
        """Whether a star import may bind any name."""

    def full_name(self, name: str) -> str:
        """Return the full name of an imported object.

        Returns the name itself for builtins, and the empty string for the module's own names.
        """
        root, dot, attributes = name.partition(".")
        if self.overridden:
            return ""
        if root in self.bindings.origins:
            return self.bindings.origins[root] + dot + attributes
        return "" if root in self.bindings.definers else name

    def is_plain_import(self, name: str) -> bool:
        """Return whether a name is imported from a package whose objects are known to be plain."""
        return self.bindings.origins[name].partition(".")[0] in _PLAIN

    def is_function(self, name: str) -> bool:
        """Return whether a name of the module is bound to a function or class of the module."""
        return any(
            effects.form.kind in ("def", "class") or self.only_wraps(effects)
            for effects in self._binding(name)
        )

    def fills_itself(self, name: str) -> bool:
        """Return whether a name is bound to a container that adds a key when it is read."""
        return "collections.defaultdict" in self._wrappers(name)

    def only_wraps(self, effects: NameEffects) -> bool:
        """Return whether a chunk is `g = jax.jit(f)` or the like, or binds a lambda.

        This does not call the wrapped function.
        """
        form = effects.form
        if form.kind != "assign" or not form.wrapped_by or effects.packages:
            return False
        if form.wrapped_by == LAMBDA:
            return True
        wrapping = {*form.wrapped_by, "partial", "functools.partial"}
        return effects.side_effects.calls <= wrapping and library_functions.is_wrapper(
            self.full_name(form.wrapped_by[0])
        )

    def keeps_state(self, wrapper: str) -> bool:
        return library_functions.keeps_state(self.full_name(wrapper))

    def is_constant(self, name: str) -> bool:
        """Return whether a name is bound once, to a plain value."""
        definers = self.bindings.definers.get(name, ())
        return name in self.bindings.origins or (len(definers) <= 1 and self.is_settled(name))

    def is_settled(self, name: str) -> bool:
        """Return whether a name is bound by now, to a value that no acting chunk has affected."""
        if not self.is_bound(name):
            return False
        if name in self.bindings.origins:
            return self.is_plain_import(name)
        definers = self.bindings.definers.get(name)
        if definers is None:
            return not self.overridden
        return self.acting.isdisjoint(definers)

    def is_mutable(self, name: str) -> bool:
        """Return whether a name is bound to an object that code which does not run could change."""
        # Functions and imported modules are taken not to be changed.
        definers = self.bindings.definers.get(name)
        if definers is None or name in self.bindings.origins or self.is_function(name):
            return False
        statements = (self.statements[i] for i in definers if i not in self.left_out)
        return not all(
            statement.binds_constant or self._binds_array(statement.name_effects)
            for statement in statements
        )

    def _binds_array(self, effects: NameEffects) -> bool:
        """Return whether a chunk assigns a new array of JAX, which nothing can change."""
        calls = effects.side_effects.calls
        return (
            effects.form.kind == "assign"
            and bool(calls)
            and not effects.side_effects.opaque
            and all(self.full_name(name).startswith(_ARRAYS) for name in calls)
        )

    def is_bound(self, name: str) -> bool:
        """Return whether a name may be bound by now; otherwise reading it fails."""
        definers = self.bindings.definers.get(name)
        if definers is None:
            return name in PROVIDED or bool(self.bindings.stars)
        # A loop binds its own target.
        return definers[0] <= self.judged or name in BUILTINS

    def reads_left_out(self, statement: TopLevelStatement) -> bool:
        """Return whether executing a chunk reads a name that only skipped chunks bind."""
        above = (
            [index for index in self.bindings.definers.get(name, ()) if index < self.judged]
            for name in (statement.reads.now if self.left_out else ())
        )
        return any(indices and self.left_out.issuperset(indices) for indices in above)

    def rebinds_acting(self, effects: NameEffects) -> bool:
        """Return whether a chunk rebinds the name of an object whose destruction may run code."""
        # The object that the name had may be destroyed at once, which runs its `__del__`.
        return self.finalizes and any(
            not self.acting.isdisjoint(self.bindings.definers.get(name, ()))
            for name in effects.binds
        )

    @functools.cached_property
    def finalizes(self) -> bool:
        return self._contains(_FINALIZES)

    @functools.cached_property
    def hears_reports(self) -> bool:
        return self._contains(_HEARS_REPORTS)

    def _contains(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(statement.text) for statement in self.statements)

    def _wrappers(self, name: str) -> Iterator[str]:
        """Yield the full names of the functions that make what a name is bound to."""
        for effects in self._binding(name):
            yield from map(self.full_name, effects.form.wrapped_by)

    def _binding(self, name: str) -> Iterator[NameEffects]:
        """Yield the effects of the chunks that bind a name."""
        for index in self.bindings.definers.get(name, ()):
            yield self.statements[index].name_effects
