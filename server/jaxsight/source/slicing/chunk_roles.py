"""The role of each chunk when the module runs, and the chunks that do not run for a hover.

An answer is that of the imported module, or it names the skipped statements. So a chunk may be
skipped silently only if it is known to change nothing but the names that it binds (`COMPUTES`,
`DEFINES`). Every other chunk `ACTS`: it may change anything, it runs in its place, and all traces
depend on it. Training loops, processes, network access and writing files are work that the user did
not ask for: `LEFT_OUT`, with the names that they may change.
"""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from jaxsight.lru import Recent
from jaxsight.source.analysis import library_functions as known
from jaxsight.source.analysis.name_effects import Surface
from jaxsight.source.analysis.side_effects import VALUE_ATTRIBUTES, VALUE_METHODS, Effects
from jaxsight.source.bindings import Bindings
from jaxsight.source.statements import Piece

if TYPE_CHECKING:
    from jaxsight.source.slicing.slices import Plan

_PLANS_KEPT = 64
_READS_FILES = re.compile(
    r"\bopen\(|\bread|\bload|\bexists\(|\bis_file\(|\bglob|\blistdir|\bstat\("
)
_BUILTINS = frozenset(dir(builtins))
PROVIDED = frozenset(
    {
        *_BUILTINS,
        *("__name__", "__file__", "__doc__", "__package__", "__spec__", "__loader__", "__path__"),
        *("__builtins__", "__annotations__", "__dict__", "__cached__"),
    }
)
"""Names that every module has."""

_REPORTING = ("logging.", "warnings.warn", "tqdm.", "absl.logging.")
"""Functions that only report to people."""
_HEARD = re.compile(
    r"\b(?:showwarning|catch_warnings|simplefilter|filterwarnings|captureWarnings"
    r"|addHandler|setLoggerClass|basicConfig|dictConfig)\b"
)
"""Code that makes reports visible to other code."""
_FINALIZES = re.compile(r"\b__del__\b|\bweakref\b")
"""Code that runs when an object is destroyed."""


class Role(Enum):
    DEFINES = "defines"
    """Binds names to functions, classes, modules or constants."""
    COMPUTES = "computes"
    """Runs code that gives values to names and has no other effect."""
    ACTS = "acts"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk's role.

    `reason` says why it is skipped, `changes` which names it may change: any if it is `None`.
    """

    role: Role
    reason: str = ""
    changes: frozenset[str] | None = frozenset()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The effects of running code. `work` says why it must not run for a hover."""

    changes: frozenset[str] | None = frozenset()
    work: str = ""

    @property
    def pure(self) -> bool:
        return self.changes == frozenset() and not self.work


_PURE = _Outcome()
_ANYTHING = _Outcome(None)


def _all_of(outcomes: Iterable[_Outcome]) -> _Outcome:
    changes: set[str] = set()
    anything = False
    work = ""
    for outcome in outcomes:
        work = work or outcome.work
        if outcome.changes is None:
            anything = True
        else:
            changes |= outcome.changes
    return _Outcome(None if anything else frozenset(changes), work)


@dataclass(slots=True)
class Roles:
    """The roles of a module's chunks, by number.

    They are valid while the analyzed functions are the same.
    """

    parts: tuple[Part, ...]
    looked_into: dict[int, Piece] = field(default_factory=dict)
    last_act: int = -1
    """The number of the last chunk that acts."""
    plain: frozenset[int] = frozenset()
    """The chunks that give values to names without calling a function of the module."""
    plans: Recent[tuple[tuple[str, ...], int | None, bool], Plan] = field(
        default_factory=lambda: Recent(_PLANS_KEPT)
    )
    """Plans of slices that were computed from these roles."""

    def hold(self, pieces: Sequence[Piece]) -> bool:
        return all(pieces[index] is piece for index, piece in self.looked_into.items())

    def of(self, index: int) -> Role:
        return self.parts[index].role


def roles_of(pieces: Sequence[Piece], marks: Sequence[str], bindings: Bindings) -> Roles:
    """Return the roles of all chunks, given their pieces and the marks in their comments."""
    last = bindings.roles
    if last is not None and last.hold(pieces):
        return last
    judge = _Judge(pieces, bindings)
    parts = tuple(judge.part(index, marks[index]) for index in range(len(pieces)))
    last_act = max((i for i, part in enumerate(parts) if part.role is Role.ACTS), default=-1)
    plain = frozenset(
        index
        for index, part in enumerate(parts)
        if part.role is Role.COMPUTES
        and pieces[index].surface.binds
        and not any(map(judge.is_function, pieces[index].surface.effects.calls))
    )
    roles = Roles(parts, judge.looked_into, last_act=last_act, plain=plain)
    if last is not None and last.parts == parts:
        last.looked_into = judge.looked_into
        return last
    bindings.roles = roles
    return roles


class _Judge:
    """Judges chunks in file order: most names that a chunk reads are bound above it."""

    def __init__(self, pieces: Sequence[Piece], bindings: Bindings) -> None:
        self.pieces = pieces
        self.bindings = bindings
        self.looked_into: dict[int, Piece] = {}
        self.parts: list[Part] = []
        self.leaves_out = False
        """Whether one of the parts is skipped."""
        self.calls: dict[str, _Outcome] = {}
        self.judging: set[str] = set()
        surfaces = [piece.surface for piece in pieces]
        self.overridden = any(surfaces[i].packages[0] not in _PLAIN for i in bindings.stars)
        """Whether a star import may bind any name."""

    def part(self, index: int, mark: str) -> Part:
        part = self.judged(index, mark)
        self.parts.append(part)
        self.leaves_out = self.leaves_out or part.role is Role.LEFT_OUT
        if part.role is not Role.DEFINES:
            self.calls.clear()
        return part

    def judged(self, index: int, mark: str) -> Part:
        surface = self.pieces[index].surface
        if surface.broken:
            return Part(Role.DEFINES)
        if mark == "always":
            return Part(Role.ACTS)
        names = frozenset({*surface.binds, *surface.may_bind})
        outcome = self.executing(surface)
        if mark == "never":
            return self.left_out("marked `never`", outcome, names)
        if self.reads_left_out(self.pieces[index]):
            return self.left_out("depends on a skipped statement", outcome, names)
        if outcome.work:
            return self.left_out(outcome.work, outcome, names)
        if work := self.loop(surface.effects, top=True):
            return self.left_out(work, outcome, names)
        if not outcome.pure or self.ends_objects(surface):
            return Part(Role.ACTS)
        plain = surface.shape.kind in ("def", "class") or not surface.executes
        return Part(Role.DEFINES if plain or self.only_wraps(surface) else Role.COMPUTES)

    def left_out(self, reason: str, outcome: _Outcome, names: frozenset[str]) -> Part:
        changes = None if outcome.changes is None else outcome.changes | names
        return Part(Role.LEFT_OUT, reason, changes)

    def ends_objects(self, surface: Surface) -> bool:
        """Return whether a chunk rebinds the name of an object whose destruction may run code."""
        return self.finalizes and any(
            i < len(self.parts) and self.parts[i].role is Role.ACTS
            for name in surface.binds
            for i in self.bindings.definers.get(name, ())
        )

    @functools.cached_property
    def finalizes(self) -> bool:
        return any(_FINALIZES.search(piece.text) for piece in self.pieces)

    def unsettled_imports(self, surface: Surface) -> bool:
        return any(package not in _PLAIN for package in surface.packages)

    def executing(self, surface: Surface) -> _Outcome:
        """Return the effects of executing a chunk's statements."""
        outcomes = [self.effects(surface.effects, reading=True)]
        if self.unsettled_imports(surface):
            outcomes.append(_ANYTHING)
        shape = surface.shape
        if self.only_wraps(surface):
            return self.reading(surface.effects, besides=shape.wraps)
        if shape.kind in ("def", "class"):
            outcomes += map(self.decorating, shape.wrapped_by)
        if shape.kind == "class":
            outcomes += [_ANYTHING] if shape.active else []
            outcomes += map(self.deriving, shape.bases)
        return _all_of(outcomes)

    def only_wraps(self, surface: Surface) -> bool:
        """Return whether a chunk is `g = jax.jit(f)` or the like, or binds a lambda.

        This does not call the wrapped function.
        """
        shape = surface.shape
        if shape.kind != "assign" or not shape.wrapped_by or surface.packages:
            return False
        if shape.wrapped_by == ("lambda",):
            return True
        others = surface.effects.calls - {*shape.wrapped_by, "partial", "functools.partial"}
        return not others and known.is_wrapper(self.full(shape.wrapped_by[0]))

    def decorating(self, name: str) -> _Outcome:
        method = name.rpartition(".")[2]
        if method in known.RULES and self.is_function(name.rpartition(".")[0]):
            return _PURE
        full = self.full(name)
        if not self.bound_by_now(name.partition(".")[0]):
            return _ANYTHING
        return _PURE if known.is_wrapper(full) else _Outcome(None, known.work(full))

    def deriving(self, base: str) -> _Outcome:
        full = self.full(base)
        if full in known.BASES:
            return _PURE
        definers = self.bindings.definers.get(base, [])
        if definers and all(
            i < len(self.parts)
            and self.pieces[i].surface.shape.kind == "class"
            and self.parts[i].role is Role.DEFINES
            for i in definers
        ):
            return _PURE
        return _ANYTHING

    def effects(self, effects: Effects, *, reading: bool) -> _Outcome:
        """Return the outcome of code with these effects."""
        outcomes = [_Outcome(effects.changes)]
        if effects.opaque or any(map(self.fills_itself, effects.reads)):
            outcomes.append(_ANYTHING)
        if effects.writes_files:
            outcomes.append(self.working(known.FILES))
        outcomes += map(self.call, sorted(effects.calls))
        outcomes += (self.call(name) for name in sorted(effects.handed) if self.is_function(name))
        if reading:
            outcomes.append(self.reading(effects))
        if not reading and (work := self.loop(effects, top=False)):
            outcomes.append(_Outcome(work=work))
        return _all_of(outcomes)

    def reading(self, effects: Effects, besides: Iterable[str] = ()) -> _Outcome:
        """Return the outcome of reading names and attributes.

        Using an unknown object may have any effect.
        """
        skipped = frozenset(besides)
        for name in effects.reads - skipped:
            if not self.is_settled(name):
                return _ANYTHING
        for name in effects.attributes - skipped - effects.calls:
            root, _, rest = name.partition(".")
            if root not in self.bindings.origins and rest not in VALUE_ATTRIBUTES:
                return _ANYTHING
        return _PURE

    def fills_itself(self, name: str) -> bool:
        """Return whether a name is bound to a container that adds a key when it is read."""
        return any(
            self.full(wrapper) == "collections.defaultdict"
            for i in self.bindings.definers.get(name, ())
            for wrapper in self.pieces[i].surface.shape.wrapped_by
        )

    def is_settled(self, name: str) -> bool:
        """Return whether a name is bound by now, to a value that no acting chunk has affected."""
        if not self.bound_by_now(name):
            return False
        if name in self.bindings.origins:
            return self.bindings.origins[name].partition(".")[0] in _PLAIN
        definers = self.bindings.definers.get(name)
        if definers is None:
            return not self.overridden
        return all(i >= len(self.parts) or self.parts[i].role is not Role.ACTS for i in definers)

    def bound_by_now(self, name: str) -> bool:
        """Return whether a name may be bound by now; otherwise reading it fails."""
        definers = self.bindings.definers.get(name)
        if definers is None:
            return name in PROVIDED or bool(self.bindings.stars)
        # A loop binds its own target.
        return definers[0] <= len(self.parts) or name in _BUILTINS

    def reads_left_out(self, piece: Piece) -> bool:
        """Return whether executing a chunk reads a name that only skipped chunks bind."""
        if not self.leaves_out:
            return False
        for name in piece.reads.now:
            definers = [i for i in self.bindings.definers.get(name, ()) if i < len(self.parts)]
            if definers and all(self.parts[i].role is Role.LEFT_OUT for i in definers):
                return True
        return False

    def call(self, name: str) -> _Outcome:
        """Return the outcome of calling this name."""
        outcome = self.calls.get(name)
        if outcome is None:
            if name in self.judging:
                return _PURE  # the effects of a recursive function are those of the rest of it
            self.judging.add(name)
            outcome = self.calls[name] = self.calling(name)
            self.judging.discard(name)
        return outcome

    def calling(self, name: str) -> _Outcome:
        root, _, method = name.partition(".")
        definers = self.bindings.definers.get(root)
        if definers is None:
            if self.overridden:
                return _ANYTHING
            if root in _BUILTINS and not method:
                work = known.work(root)
                return self.working(work) if work else _known(root in known.BUILTINS)
            return _ANYTHING
        if all(i < len(self.parts) and self.parts[i].role is Role.LEFT_OUT for i in definers):
            limited = all(self.parts[i].changes is not None for i in definers)
            return _Outcome(frozenset() if limited else None, "depends on a skipped statement")
        if root in self.bindings.origins:
            full = self.full(name)
            if work := known.work(full):
                return self.working(work)
            if full.startswith(_REPORTING):
                return _known(not self.hears_reports)
            return _known(known.is_pure(full) or known.is_wrapper(full))
        if method:
            if work := known.work(name):
                return self.working(work)
            if method in known.RULES and self.is_function(root):
                return _PURE
            return _known(method in VALUE_METHODS and self.is_settled(root))
        return _all_of(self.calling_what(index) for index in definers)

    def working(self, work: str) -> _Outcome:
        """Return the outcome of work that changes nothing in the process.

        Other code may read the files that it writes.
        """
        return _Outcome(None if work == known.FILES and self.reads_files else frozenset(), work)

    @functools.cached_property
    def hears_reports(self) -> bool:
        return any(_HEARD.search(piece.text) for piece in self.pieces)

    @functools.cached_property
    def reads_files(self) -> bool:
        return any(_READS_FILES.search(piece.text) for piece in self.pieces)

    def calling_what(self, index: int) -> _Outcome:
        """Return the outcome of calling the object that a chunk binds."""
        piece = self.pieces[index]
        shape = piece.surface.shape
        if shape.kind == "def" or shape.wrapped_by == ("lambda",):
            self.looked_into[index] = piece
            wrappers = [name for name in shape.wrapped_by if name != "lambda"]
            if not all(
                self.decorating(name).pure and not self.remembers(name) for name in wrappers
            ):
                return _ANYTHING
            if wrappers and not all(map(self.is_constant, piece.effects_of_call.reads)):
                return _ANYTHING  # a compiled function keeps the values that it read
            return self.effects(piece.effects_of_call, reading=False)
        if self.only_wraps(piece.surface) and not self.remembers(shape.wrapped_by[0]):
            return _all_of(map(self.call, shape.wraps))
        return _ANYTHING

    def remembers(self, wrapper: str) -> bool:
        return known.remembers(self.full(wrapper))

    def is_constant(self, name: str) -> bool:
        """Return whether a name is bound once, to a plain value."""
        definers = self.bindings.definers.get(name, ())
        return name in self.bindings.origins or (len(definers) <= 1 and self.is_settled(name))

    def loop(self, effects: Effects, *, top: bool) -> str:
        """Return why a loop is long work; empty if it is not.

        It shows a progress bar, or repeatedly calls compiled functions or functions of arrays.
        """
        for name in sorted(effects.repeated):
            if self.compiles(name):
                return "loop that calls compiled functions"
        for name in sorted(effects.calls):
            if known.is_progress(self.full(name)):
                return "loop with a progress bar"
        for name in sorted(effects.carried) if top else ():
            if self.computes_arrays(name):
                return "loop that computes arrays"
        return ""

    def compiles(self, name: str) -> bool:
        """Return whether a name of the module is bound to a compiled function."""
        return any(
            known.is_jit(self.full(wrapper))
            for index in self.bindings.definers.get(name, ())
            for wrapper in self.pieces[index].surface.shape.wrapped_by
        )

    def computes_arrays(self, name: str) -> bool:
        """Return whether a function computes with JAX.

        A function of the module is analyzed; one imported from the project may.
        """
        root = name.partition(".")[0]
        origin = self.bindings.origins.get(root)
        if origin is not None:
            return origin.partition(".")[0] not in _PLAIN
        for index in self.bindings.definers.get(root, ()):
            piece = self.pieces[index]
            if piece.surface.shape.kind == "def":
                self.looked_into[index] = piece
                origins = map(self.full, piece.effects_of_call.calls)
                if any(
                    full.startswith(("jax.", "flax.", "optax.", "equinox.")) for full in origins
                ):
                    return True
        return False

    def is_function(self, name: str) -> bool:
        """Return whether a name of the module is bound to a function or class of the module."""
        return any(
            surface.shape.kind in ("def", "class") or self.only_wraps(surface)
            for index in self.bindings.definers.get(name, ())
            for surface in (self.pieces[index].surface,)
        )

    def full(self, name: str) -> str:
        """Return the full name of an imported object.

        Returns the name itself for builtins, and the empty string for the module's own names.
        """
        root, dot, rest = name.partition(".")
        if self.overridden:
            return ""
        if root in self.bindings.origins:
            return self.bindings.origins[root] + dot + rest
        return "" if root in self.bindings.definers else name


_PLAIN = known.PLAIN_PACKAGES


def _known(pure: bool) -> _Outcome:
    return _PURE if pure else _ANYTHING
