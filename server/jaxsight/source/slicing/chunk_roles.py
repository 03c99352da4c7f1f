"""The role of each chunk when the module runs, and the chunks that do not run for a hover.

An answer is that of the imported module, or it names the skipped statements. So a chunk may be
skipped silently only if it is known to change nothing but the names that it binds (`COMPUTES`,
`DEFINES`). Every other chunk `ACTS`: it may change anything, it runs in its place, and all traces
depend on it, such as one that writes files: it is refused that where it runs. Training loops,
processes, network access and plots are work that the user did not ask for: `LEFT_OUT`, with the
names that they may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from weakref import WeakKeyDictionary

from jaxsight.source.analysis import library_functions
from jaxsight.source.analysis.local_names import RESULT, VALUE_ATTRIBUTES, VALUE_METHODS
from jaxsight.source.analysis.name_effects import Mark, NameEffects
from jaxsight.source.analysis.side_effects import SideEffects
from jaxsight.source.bindings import Bindings
from jaxsight.source.module import ModuleChunk
from jaxsight.source.slicing.compiled_loops import CompiledLoops
from jaxsight.source.slicing.name_facts import BUILTINS, LAMBDA, NameFacts
from jaxsight.source.statements import TopLevelStatement, first_line
from jaxsight.source.text import Range

_REPORTING = ("logging.", "warnings.warn", "tqdm.", "absl.logging.")
"""Functions that only report to people."""
_DISPLAY = "display"
"""A function that notebooks have without an import."""
_COMPILED_LOOP = "loop that calls compiled functions"
_ARRAY_PACKAGES = ("jax.", "flax.", "optax.", "equinox.")


class Role(Enum):
    DEFINES = "defines"
    """Binds names to functions, classes, modules or constants."""
    COMPUTES = "computes"
    """Runs code that gives values to names and has no other effect."""
    ACTS = "acts"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class ChunkRole:
    """A chunk's role.

    `reason` says why it is skipped, `changes` which names it may change: any if it is `None`; of a
    chunk that acts, those of which the answer would be wrong if it did not run to its end.
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
    every = list(outcomes)
    changes = [outcome.changes for outcome in every if outcome.changes is not None]
    return _Outcome(
        frozenset().union(*changes) if len(changes) == len(every) else None,
        next((outcome.work for outcome in every if outcome.work), ""),
    )


@dataclass(eq=False, slots=True, weakref_slot=True)
class ChunkRoles:
    """The roles of a module's chunks, by number.

    They are valid while the analyzed functions are the same.
    """

    all: tuple[ChunkRole, ...]
    analyzed: dict[int, TopLevelStatement] = field(default_factory=dict)
    """The functions whose bodies the roles depend on, by chunk."""
    last_act: int = -1
    """The number of the last chunk that acts."""
    plain: frozenset[int] = frozenset()
    """The chunks that give values to names without calling a function of the module."""

    def of(self, index: int) -> Role:
        return self.all[index].role


_last_roles: WeakKeyDictionary[Bindings, ChunkRoles] = WeakKeyDictionary()
"""By bindings, which edits inside of functions share: the roles that were last computed."""


def roles_of(
    statements: Sequence[TopLevelStatement], marks: Sequence[Mark], bindings: Bindings
) -> ChunkRoles:
    """Return the roles of all chunks, given their statements and the marks in their comments."""
    last = _last_roles.get(bindings)
    if last is not None and all(statements[i] is each for i, each in last.analyzed.items()):
        return last
    judge = _Judge(NameFacts(statements, bindings))
    every = tuple(judge.role(index, mark) for index, mark in enumerate(marks))
    plain = frozenset(
        index
        for index, role in enumerate(every)
        if role.role is Role.COMPUTES
        and statements[index].name_effects.binds
        and not any(map(judge.facts.is_function, statements[index].name_effects.side_effects.calls))
    )
    last_act = max(judge.facts.acting, default=-1)
    roles = ChunkRoles(every, judge.analyzed, last_act=last_act, plain=plain)
    if last is not None and last.all == every:
        last.analyzed = judge.analyzed
        return last
    _last_roles[bindings] = roles
    return roles


class _Judge:
    """Judges chunks in file order."""

    def __init__(self, facts: NameFacts) -> None:
        self.facts = facts
        self.bindings = facts.bindings
        self.statements = facts.statements
        self.analyzed: dict[int, TopLevelStatement] = {}
        self.roles: list[ChunkRole] = []
        self.calls: dict[tuple[str, bool], _Outcome] = {}
        self.loops = CompiledLoops(facts, self.analyzed)
        self.skipping = False
        """Whether code is judged that does not run, by what it can reach."""
        self.judging: set[str] = set()
        """The names whose calls are being judged."""

    def role(self, index: int, mark: Mark) -> ChunkRole:
        """Return the role of the next chunk."""
        role = self.judge(self.statements[index], mark)
        self.roles.append(role)
        self.facts.judged += 1
        if role.role is Role.ACTS:
            self.facts.acting.add(index)
        elif role.role is Role.LEFT_OUT:
            self.facts.left_out.add(index)
        # Its names may now be bound to something else, or be skipped.
        if role.role is not Role.DEFINES:
            self.calls.clear()
        return role

    def judge(self, statement: TopLevelStatement, mark: Mark) -> ChunkRole:
        effects = statement.name_effects
        if effects.broken:
            return ChunkRole(Role.DEFINES)
        # Its author wants its effects, of which the text may show nothing.
        if mark == "always":
            return ChunkRole(Role.ACTS, changes=None)
        names = frozenset({*effects.binds, *effects.may_bind})
        outcome = self.executing(effects)
        if mark == "never":
            reason = "marked `never`"
        elif self.facts.reads_left_out(statement):
            reason = "depends on a skipped statement"
        else:
            reason = outcome.work
            if not reason and effects.executes and self.loops.reached(statement):
                reason = _COMPILED_LOOP
            reason = reason or self.loop(effects.side_effects, top=True)
        if reason or not outcome.pure or self.facts.rebinds_acting(effects):
            changes = self.of_skipped(effects, outcome).changes
            changes = None if changes is None else changes | names
            return ChunkRole(Role.LEFT_OUT if reason else Role.ACTS, reason, changes)
        plain = effects.form.kind in ("def", "class") or not effects.executes
        return ChunkRole(Role.DEFINES if plain or self.facts.only_wraps(effects) else Role.COMPUTES)

    def of_skipped(self, effects: NameEffects, outcome: _Outcome) -> _Outcome:
        """Return the outcome of a skipped statement, of which only what it may change matters.

        Whatever is printed or drawn is only looked at: operators, attributes and methods of values
        that the module made are taken to change nothing, or each plot would be a caveat.
        """
        if outcome.changes is not None or effects.form.kind in ("def", "class"):
            return outcome
        side_effects = effects.side_effects
        calls = {name for name in side_effects.calls if not self.is_look(name)}
        looking = replace(side_effects, calls=calls)
        self.skipping = True
        try:
            return self.outcome(looking, reading=False)
        finally:
            self.skipping = False

    def is_look(self, name: str) -> bool:
        """Return whether a call is that of a method of a value, such as `losses.mean()`."""
        root, _, method = name.partition(".")
        is_own = root in self.bindings.definers and root not in self.bindings.origins
        return is_own and method in VALUE_METHODS

    def executing(self, effects: NameEffects) -> _Outcome:
        """Return the outcome of executing a chunk's statements."""
        outcomes = [self.outcome(effects.side_effects, reading=True)]
        # Importing a package of the project runs its code.
        if not library_functions.PLAIN_PACKAGES.issuperset(effects.packages):
            outcomes.append(_ANYTHING)
        form = effects.form
        if self.facts.only_wraps(effects):
            return self.reading(effects.side_effects, besides=form.wraps)
        if form.kind in ("def", "class"):
            outcomes += map(self.decorating, form.wrapped_by)
        if form.kind == "class":
            outcomes += [_ANYTHING] if form.active else []
            outcomes += map(self.deriving, form.bases)
        return _all_of(outcomes)

    def decorating(self, name: str) -> _Outcome:
        owner, _, method = name.rpartition(".")
        if method in library_functions.RULES and self.facts.is_function(owner):
            return _PURE
        full_name = self.facts.full_name(name)
        if not self.facts.is_bound(name.partition(".")[0]):
            return _ANYTHING
        if library_functions.is_wrapper(full_name):
            return _PURE
        return _Outcome(None, library_functions.work(full_name))

    def deriving(self, base: str) -> _Outcome:
        if self.facts.full_name(base) in library_functions.BASES:
            return _PURE
        definers = self.bindings.definers.get(base, [])
        if definers and all(
            index < len(self.roles)
            and self.roles[index].role is Role.DEFINES
            and self.statements[index].name_effects.form.kind == "class"
            for index in definers
        ):
            return _PURE
        return _ANYTHING

    def outcome(self, effects: SideEffects, *, reading: bool) -> _Outcome:
        """Return the outcome of code with these effects."""
        facts = self.facts
        outcomes = [_Outcome(frozenset(effects.changes))]
        if self.skipping:
            # It can change only what it reaches: a function what it is passed, and an unknown
            # construct the names that it reads.
            handed = effects.handed if any(map(facts.is_function, effects.calls)) else ()
            reached = effects.reads if effects.opaque else handed
            outcomes.append(_Outcome(frozenset(filter(facts.is_mutable, reached))))
        elif effects.opaque or any(map(facts.fills_itself, effects.reads)):
            outcomes.append(_ANYTHING)
        outcomes += map(self.call, sorted(effects.calls))
        outcomes += (self.call(name) for name in sorted(effects.handed) if facts.is_function(name))
        if reading:
            outcomes.append(self.reading(effects))
        if not reading and (work := self.loop(effects, top=False)):
            outcomes.append(_Outcome(work=work))
        return _all_of(outcomes)

    def reading(self, effects: SideEffects, besides: Iterable[str] = ()) -> _Outcome:
        """Return the outcome of reading names and attributes.

        Using an unknown object may have any effect.
        """
        skipped = frozenset(besides)
        for name in effects.reads - skipped:
            if not self.facts.is_settled(name):
                return _ANYTHING
        for name in effects.attributes - skipped - effects.calls:
            root, _, attribute = name.partition(".")
            if root not in self.bindings.origins and attribute not in VALUE_ATTRIBUTES:
                return _ANYTHING
        return _PURE

    def call(self, name: str) -> _Outcome:
        """Return the outcome of calling this name."""
        known = (name, self.skipping)
        outcome = self.calls.get(known)
        if outcome is None:
            if name in self.judging:
                return _PURE  # the effects of a recursive function are those of the rest of it
            self.judging.add(name)
            outcome = self.calls[known] = self.calling(name)
            self.judging.discard(name)
        return outcome

    def calling(self, name: str) -> _Outcome:
        root, _, method = name.partition(".")
        definers = self.bindings.definers.get(root)
        if definers is None:
            if name == _DISPLAY:
                return _Outcome(work=library_functions.PLOTS)
            if method or self.facts.overridden or root not in BUILTINS:
                return _ANYTHING
            return _pure_if(root in library_functions.BUILTINS)
        if self.facts.left_out.issuperset(definers):
            limited = all(self.roles[index].changes is not None for index in definers)
            return _Outcome(frozenset() if limited else None, "depends on a skipped statement")
        if root in self.bindings.origins:
            return self.calling_import(self.facts.full_name(name))
        if method:
            kinds = {self.statements[index].name_effects.form.kind for index in definers}
            if self.skipping and (definers[-1] == self.facts.judged or kinds == {"def"}):
                # A method of what the skipped statement itself makes, or of a function: `f.jit`.
                return _PURE
            if method in library_functions.RULES and self.facts.is_function(root):
                return _PURE
            return _pure_if(method in VALUE_METHODS and self.facts.is_settled(root))
        return _all_of(map(self.calling_value, definers))

    def calling_import(self, full_name: str) -> _Outcome:
        """Return the outcome of calling an imported function."""
        if work := library_functions.work(full_name):
            return _Outcome(work=work)
        if full_name.startswith(_REPORTING):
            return _pure_if(not self.facts.hears_reports)
        if self.skipping and full_name.startswith(_ARRAY_PACKAGES):
            return _pure_if(not full_name.startswith("jax.config"))
        if RESULT in full_name:
            return _ANYTHING  # a method of what another function returns
        return _pure_if(
            library_functions.is_pure(full_name) or library_functions.is_wrapper(full_name)
        )

    def calling_value(self, index: int) -> _Outcome:
        """Return the outcome of calling the object that a chunk binds."""
        statement = self.statements[index]
        form = statement.name_effects.form
        if form.kind == "def" or form.wrapped_by == LAMBDA:
            self.analyzed[index] = statement
            wrappers = [name for name in form.wrapped_by if name != "lambda"]
            if not all(
                self.decorating(name).pure and not self.facts.keeps_state(name) for name in wrappers
            ):
                return _ANYTHING
            effects = statement.effects_of_call
            if self.skipping:
                return self.outcome(effects, reading=False)
            # `jax.jit` reads names of the module only while it traces.
            if wrappers and not all(map(self.facts.is_constant, effects.reads)):
                return _ANYTHING  # a compiled function keeps the values that it read
            return self.outcome(effects, reading=False)
        if self.facts.only_wraps(statement.name_effects) and not self.facts.keeps_state(
            form.wrapped_by[0]
        ):
            return _all_of(map(self.call, form.wraps))
        return _ANYTHING

    def loop(self, effects: SideEffects, *, top: bool) -> str:
        """Return why a loop is long work; empty if it is not.

        It shows a progress bar, or repeatedly calls functions of arrays.
        """
        for name in sorted(effects.calls):
            if library_functions.is_progress(self.facts.full_name(name)):
                return "loop with a progress bar"
        for name in sorted(effects.carried) if top else ():
            if self.computes_arrays(name):
                return "loop that computes arrays"
        return ""

    def computes_arrays(self, name: str) -> bool:
        """Return whether a function computes with JAX.

        A function of the module is analyzed; one imported from the project may.
        """
        root = name.partition(".")[0]
        if root in self.bindings.origins:
            return not self.facts.is_plain_import(root)
        for index in self.bindings.definers.get(root, ()):
            statement = self.statements[index]
            if statement.name_effects.form.kind == "def":
                self.analyzed[index] = statement
                full_names = map(self.facts.full_name, statement.effects_of_call.calls)
                if any(full_name.startswith(_ARRAY_PACKAGES) for full_name in full_names):
                    return True
        return False


def _pure_if(pure: bool) -> _Outcome:
    return _PURE if pure else _ANYTHING


# A caveat: a statement that an answer skipped.


_NAMES_SHOWN = 3
"""Names that a caveat lists, a choice: it is one line; others are counted."""
_STATEMENT_SHOWN = 48
"""Characters of a statement that a caveat quotes, a choice: its name and its first arguments."""


@dataclass(frozen=True, slots=True)
class SliceCaveat:
    """Why an answer may differ from that of the imported module.

    It names the statement at `range` and gives the reason in one clause.
    """

    range: Range
    reason: str


def skipped(chunk: ModuleChunk, role: ChunkRole) -> SliceCaveat:
    """Return the caveat of a chunk that is left out."""
    names = sorted(role.changes) if role.changes is not None else []
    if role.changes is None:
        consequence = "may change anything"
    elif len(names) > _NAMES_SHOWN:
        consequence = f"may change `{names[0]}` and {len(names) - 1} other names"
    else:
        consequence = "may change " + " and ".join(f"`{name}`" for name in names)
    reason = f"{quoted(chunk)} was not run ({role.reason}) and {consequence}"
    return SliceCaveat(first_line(chunk.text).shifted(chunk.first_line), reason)


def redefined(chunk: ModuleChunk) -> SliceCaveat:
    """Return the caveat of the chunk before which a slice ends."""
    reason = f"{quoted(chunk)} was not run: it redefines the name"
    return SliceCaveat(first_line(chunk.text).shifted(chunk.first_line), reason)


def quoted(chunk: ModuleChunk) -> str:
    """Return a statement's first line, after its decorators, shortened and in backticks."""
    lines = chunk.text.split("\n")
    return quoted_line(next((line for line in lines if not line.startswith("@")), lines[0]))


def quoted_line(line: str) -> str:
    """Return a line without its comment, shortened and in backticks."""
    line = " ".join(line.partition("#")[0].replace("`", "'").split())
    short = line if len(line) <= _STATEMENT_SHOWN else f"{line[: _STATEMENT_SHOWN - 1].rstrip()}…"
    return f"`{short}`"
