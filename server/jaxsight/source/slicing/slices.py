"""The statements that run before a function is traced, each with its key.

All acting chunks run, in order, and so do all imports, because both may change anything. Of the
other chunks, those run that the function or the acting ones need, found by following names. Skipped
chunks that may matter are reported: see `roles`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.source.analysis.name_reads import Reads
from jaxsight.source.bindings import Bindings
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.slicing.caveat import Caveat
from jaxsight.source.slicing.chunk_roles import PROVIDED, Part, Role, Roles, roles_of
from jaxsight.source.slicing.slice_keys import Keying, Links
from jaxsight.source.statements import Piece
from jaxsight.source.text import Position, Range
from jaxsight.wire.chunks import Chunk

STAR = "*"
"""The name in `Chunk.binds` of a chunk with `from … import *`: it may bind any name."""
_NAMES_SHOWN = 3
"""Number of names that a caveat lists."""
_STATEMENT_SHOWN = 48
"""Maximum length of a statement that a caveat quotes, in characters."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The chunks to execute, in file order; `members` are the same chunks at their places.

    * `key` changes exactly when the effects of the slice may have changed.
    * `broken`: chunks that the slice needs but that do not parse.
    * `unknown`: names that the module does not bind.
    * `caveats`: statements that are skipped and may change the outcome.
    """

    chunks: tuple[Chunk, ...]
    members: tuple[ModuleChunk, ...]
    key: str
    keyed: tuple[bool, ...]
    """Which of the chunks are part of the key.

    Slices with equal keys have the same such chunks, in the same order.
    """
    broken: tuple[ModuleChunk, ...] = ()
    unknown: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    sees_lines: bool = False
    """Whether its code may read the lines of the file, or its own place in them."""


def slice_for(
    module: Module, names: Iterable[str], chunk: ModuleChunk | None = None, *, whole: bool = False
) -> Slice:
    """Return the slice that gives `names` their values.

    Args:
        names: the function's top-level name, and the names that its example inputs use.
        chunk: the function's chunk. It is needed if the module binds the name again further down:
            then the slice ends before that.
        whole: skip no chunk that only binds names, because other modules may read them.
    """
    roots = tuple(names)
    own = module.number_of(chunk) if chunk is not None else None
    pieces = [member.piece for member in module.chunks]
    roles = roles_of(pieces, [member.mark for member in module.chunks], module.bindings)
    plan = roles.plans.get((roots, own, whole))
    if plan is None or not plan.holds(module):
        plan = Plan(module, roles, _Gathering(module, roles, roots, own, whole))
        roles.plans.put((roots, own, whole), plan)
    return plan.slice(module, roles)


class Plan:
    """The chunks of a slice and their dependencies; valid while each of them reads the same names.

    The bindings of the chunks are fixed: a plan belongs to a module's bindings and roles.
    """

    def __init__(self, module: Module, roles: Roles, gathered: _Gathering) -> None:
        self.members = tuple(sorted(gathered.included))
        self.broken = tuple(sorted(gathered.broken))
        self.unknown = tuple(sorted(gathered.unknown))
        self._needed = frozenset(gathered.needed_chunks)
        self._left_out = tuple(sorted(gathered.left_out))
        self._end = gathered.end
        self._sees_lines = gathered.sees_lines
        pieces = {index: module.chunks[index].piece for index in self.members}
        self._reads = tuple(piece.reads for piece in pieces.values())
        self._ends = gathered.looked_at
        self._documented = gathered.whole or any(p.surface.documented for p in pieces.values())
        events = gathered.events()
        bindings = module.bindings
        acting = {i for i in self.members if roles.of(i) is Role.ACTS}
        self._acting = frozenset(acting)
        self._executing = self._acting | {i for i in self.members if roles.of(i) is Role.COMPUTES}
        importing = {i for i, piece in pieces.items() if piece.surface.packages}
        self._keyed = self._needed | acting | importing | (roles.plain & {*self.members})
        self._keying = Keying(
            Links(
                members=self.members,
                reads={
                    index: sorted(name for name in piece.reads.all if events.get(name))
                    for index, piece in pieces.items()
                },
                events={name: chunks for name, chunks in events.items() if chunks},
                executing=frozenset(
                    i for i, piece in pieces.items() if piece.surface.executes or i in acting
                ),
                acting=frozenset(self.members) if gathered.whole else self._acting,
                imports=frozenset(importing),
                before={
                    index: ",".join(
                        f"{name}:{bindings.before(name, index)}"
                        for name in sorted(_read_now(index, pieces, bindings))
                        if name in bindings.definers
                    )
                    for index, piece in pieces.items()
                    if piece.reads.now
                },
                future_flags=bindings.future_flags,
            )
        )

    def holds(self, module: Module) -> bool:
        """Return whether the chunks of `module` read the same names as when the plan was made.

        The module must have the same bindings.
        """
        chunks = module.chunks
        return all(
            chunks[index].piece.reads == reads
            for index, reads in zip(self.members, self._reads, strict=True)
        ) and all(chunks[index].piece.reads == reads for index, reads in self._ends.items())

    def slice(self, module: Module, roles: Roles) -> Slice:
        """Return the slice of a module for which the plan is valid."""
        members = tuple(module.chunks[index] for index in self.members)
        keys = self._keys(module)
        keyed = [key for i, key in zip(self.members, keys, strict=True) if i in self._keyed]
        caveats = [_not_run(module.chunks[i], roles.parts[i]) for i in self._left_out]
        if self._end < module.bindings.count:
            caveats.append(_replaced(module.chunks[self._end]))
        return Slice(
            chunks=tuple(
                self._sent(index, member, key)
                for index, member, key in zip(self.members, members, keys, strict=True)
            ),
            members=members,
            key=_digest(keyed),
            keyed=tuple(index in self._keyed for index in self.members),
            broken=tuple(module.chunks[index] for index in self.broken),
            unknown=self.unknown,
            caveats=tuple(caveats),
            sees_lines=self._sees_lines,
        )

    def _keys(self, module: Module) -> list[str]:
        pieces = {index: module.chunks[index].piece for index in self.members}
        if self._sees_lines:
            # The key includes the text and its place, because code may read its own lines.
            members = {i: module.chunks[i] for i in self.members}
            return self._keying.keys({i: f"{c.id}@{c.first_line}" for i, c in members.items()})
        if self._documented:
            return self._keying.keys({i: p.meaning_with_docstrings for i, p in pieces.items()})
        return self._keying.keys({i: p.meaning for i, p in pieces.items()})

    def _sent(self, index: int, chunk: ModuleChunk, key: str) -> Chunk:
        surface = chunk.surface
        star = (STAR,) if surface.star else ()
        return Chunk(
            id=chunk.id,
            key=key,
            text=chunk.text,
            binds=(*surface.binds, *surface.may_bind, *star),
            executes=index in self._executing,
            acts=index in self._acting,
            needed=index in self._needed,
            unlimited=chunk.mark == "always" or bool(surface.packages),
            above=chunk.first_line,
        )


def _read_now(index: int, pieces: Mapping[int, Piece], bindings: Bindings) -> set[str]:
    """Return the names that executing a chunk may read, also in functions that it may call."""
    piece = pieces[index]
    names = set(piece.reads.now)
    todo = list(names) if piece.surface.executes else []
    while todo:
        for definer in bindings.definers.get(todo.pop(), ()):
            if definer in pieces:
                more = pieces[definer].reads.later - names
                names |= more
                todo += more
    return names


def _digest(keys: Sequence[str]) -> str:
    return hashlib.blake2b("\0".join(keys).encode(), digest_size=16).hexdigest()


def _not_run(chunk: ModuleChunk, part: Part) -> Caveat:
    names = sorted(part.changes) if part.changes is not None else []
    if part.changes is None:
        consequence = "may change anything"
    elif len(names) > _NAMES_SHOWN:
        consequence = f"may change `{names[0]}` and {len(names) - 1} other names"
    else:
        consequence = "may change " + " and ".join(f"`{name}`" for name in names)
    return Caveat(
        _first_line(chunk), f"{quoted(chunk)} was not run ({part.reason}) and {consequence}"
    )


def _replaced(chunk: ModuleChunk) -> Caveat:
    reason = f"{quoted(chunk)} was not run: it redefines the name"
    return Caveat(_first_line(chunk), reason)


def _first_line(chunk: ModuleChunk) -> Range:
    line = chunk.first_line
    return Range(Position(line, 0), Position(line, len(chunk.text.partition("\n")[0])))


def quoted(chunk: ModuleChunk) -> str:
    """Return a statement's first line, after its decorators, shortened and in backticks."""
    lines = chunk.text.split("\n")
    line = next((each for each in lines if not each.startswith("@")), lines[0])
    line = " ".join(line.partition("#")[0].replace("`", "'").split())
    short = line if len(line) <= _STATEMENT_SHOWN else f"{line[: _STATEMENT_SHOWN - 1].rstrip()}…"
    return f"`{short}`"


class _Gathering:
    """Collects the chunks of a slice.

    A name is needed either at a chunk that reads it while it is executed, or later, when a function
    is called: then at the end, and at every chunk of the slice that may call the function.
    """

    def __init__(
        self, module: Module, roles: Roles, roots: Iterable[str], own: int | None, whole: bool
    ) -> None:
        self.module = module
        self.bindings = module.bindings
        self.roles = roles
        self.included: set[int] = set()
        self.broken: set[int] = set()
        self.unknown: set[str] = set()
        self.needed: set[str] = set()
        self._later: dict[str, None] = {}
        self._pending: list[int] = []
        self._calling: list[int] = []
        self.looked_at: dict[int, Reads] = {}
        """Chunks outside of the slice whose reads affected it."""
        self.end = self._end(own)
        self.without = frozenset(
            i for i, part in enumerate(roles.parts) if part.role is Role.LEFT_OUT
        )
        self._gather_what_is_needed(roots, own)
        self.needed_chunks = frozenset(self.included)
        """Chunks that the function needs by name; errors in others must not affect the answer."""
        broken = frozenset(self.broken)
        self._gather_what_acts()
        self.whole = whole or self._introspects()
        if self.whole:
            for index in range(self.end):
                if index not in self.without:
                    self._include(index)
            self._follow()
        # A syntax error in a chunk that is not needed does not prevent an answer.
        self.broken = set(broken)
        self.left_out = {
            index for index in self.without if index < self.end and self._may_matter(index)
        }
        self.sees_lines = any(module.chunks[i].surface.sees_lines for i in self.included)

    def events(self) -> dict[str, list[int]]:
        """Return for each needed name the chunks that bind it or give it rules, in order."""
        events: dict[str, list[int]] = {}
        for name in self.needed:
            chunks = {*self.bindings.definers.get(name, ()), *self.bindings.ruled.get(name, ())}
            events[name] = sorted(chunks & self.included)
        return events

    def _gather_what_is_needed(self, roots: Iterable[str], own: int | None) -> None:
        if own is not None:
            self._include(own)
        for name in roots:
            self._need_later(name)
        self._follow()

    def _gather_what_acts(self) -> None:
        """Include acting chunks, all imports, and computations before the last acting chunk.

        They must see the state that an import would show them. Computations without functions of
        the module run too, because they may fail.
        """
        last = min(self.end, self.roles.last_act)
        for index in range(self.end):
            role = self.roles.of(index)
            surface = self.module.chunks[index].surface
            if (
                role is Role.ACTS
                or (surface.packages and role is not Role.LEFT_OUT)
                or (role is Role.COMPUTES and (index < last or index in self.roles.plain))
            ):
                self._include(index)
        self._follow()

    def _introspects(self) -> bool:
        return any(self.module.chunks[i].surface.introspects for i in self.included)

    def _may_matter(self, index: int) -> bool:
        changes = self.roles.parts[index].changes
        return changes is None or not changes.isdisjoint(self.needed)

    def _end(self, own: int | None) -> int:
        """Return the first chunk after `own` that rebinds a function of it without reading it."""
        if own is None:
            return self.bindings.count
        ends = [self.bindings.count]
        for name in self.module.chunks[own].surface.binds:
            for index in self.bindings.definers.get(name, ()):
                piece = self.module.chunks[index].piece
                anew = index > own and name in piece.surface.binds
                if anew and not self._builds_on(name, own, index):
                    ends.append(index)
                    break
        return min(ends)

    def _builds_on(self, name: str, own: int, place: int) -> bool:
        """Return whether chunk `place` computes the new value of `name` from that of chunk `own`.

        Wrapping a function does.
        """
        todo, seen = [place], {place}
        while todo:
            index = todo.pop()
            piece = self.module.chunks[index].piece
            self.looked_at[index] = piece.reads
            if name in piece.reads.now:
                return True
            for read in (piece.reads.now | piece.reads.later) - {name}:
                for definer in self.bindings.definers.get(read, ()):
                    if own < definer < place and definer not in seen:
                        seen.add(definer)
                        todo.append(definer)
        return False

    def _include(self, index: int) -> None:
        if index not in self.included and index not in self.broken:
            if self.module.chunks[index].broken is not None:
                self.broken.add(index)
            else:
                self.included.add(index)
                self._pending.append(index)

    def _follow(self) -> None:
        while self._pending:
            index = self._pending.pop()
            piece = self.module.chunks[index].piece
            reads = piece.reads
            for name in reads.now:
                self._need(name, index)
                self._need_later(name)
            for name in reads.later:
                self._need_later(name)
            for name in reads.perhaps:
                if name in self.bindings.definers:
                    self._need(name, index)
                    self._need_later(name)
            if piece.surface.executes:
                self._calling.append(index)
                for name in self._later:
                    self._need_when_called(name, index)
            for name in (*piece.surface.binds, *piece.surface.may_bind):
                self._include_rules(name)

    def _need_later(self, name: str) -> None:
        """Note a name that is read when a function is called, or whose value may be."""
        if name in self._later:
            return
        self._later[name] = None
        self._need(name, self.end)
        for index in self._calling:
            self._need_when_called(name, index)

    def _need_when_called(self, name: str, index: int) -> None:
        if len(self.bindings.definers.get(name, ())) > 1:
            self._need(name, index)

    def _need(self, name: str, place: int) -> None:
        self.needed.add(name)
        reaching = self.bindings.reaching(name, place, self.without)
        if not reaching and name not in PROVIDED and name not in self.bindings.definers:
            self.unknown.add(name)
        for index in reaching:
            self._include(index)

    def _include_rules(self, name: str) -> None:
        """Include the chunks that give a function its rules."""
        for index in self.bindings.ruled.get(name, ()):
            if index < self.end and index not in self.without:
                self._include(index)
