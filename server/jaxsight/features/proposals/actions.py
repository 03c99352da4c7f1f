"""The code actions *Keep these inputs*, which are in use, and *Add example inputs*.

The latter are what the text suggests; the title says if it could not be traced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from jaxsight.examples.docstrings.sections import heading_lines, style_of
from jaxsight.examples.notation.tokens import ChunkText
from jaxsight.examples.sets import ExampleSet
from jaxsight.features.model import Action
from jaxsight.files import reading
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.queries.documents import Document, Subject, module_name
from jaxsight.queries.engine import Engine
from jaxsight.queries.proposals.proposals import show
from jaxsight.settings.example_settings import LIBRARIES, with_entries
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.source.text import Edit, Position, Range
from jaxsight.source.text_shift import common_prefix
from jaxsight.text.inert import clause

if TYPE_CHECKING:
    from jaxsight.examples.proposals.proposal import Proposal
    from jaxsight.queries.proposals.trying import Tried


# Write a section of example inputs into a function's docstring.


def section_edit(function: Function, lines: Sequence[str]) -> Edit:
    """Return the edit that adds a section with these lines, in the style of the docstring.

    Without a docstring, the edit adds one. Quotes that cannot contain several lines become triple
    quotes.
    """
    docstring, body, indent = function.docstring, function.body_start, function.body_indent
    source = ChunkText(docstring.text, docstring.start) if docstring is not None else None
    style = style_of(source) if source is not None else "google"
    deeper = indent if style == "numpydoc" else indent + "    "
    heading = [indent + line for line in heading_lines("Example inputs", style)]
    section = "\n".join([*heading, *(deeper + line for line in lines)])
    if docstring is None or source is None:
        before = f"\n{indent}" if body.column != len(indent) else ""  # it is on the line of `def`
        return Edit(Range(body, body), f'{before}"""\n{section}\n{indent}"""\n{indent}')
    text = docstring.text.rstrip()
    addition = ("\n\n" if text else "\n") + section + "\n" + indent
    quotes = docstring.start.column - body.column if docstring.start.line == body.line else 3
    if quotes >= 3:
        return Edit(source.range(len(text), len(docstring.text)), addition)
    around = "'''" if '"""' in text else '"""'
    end = source.position(len(docstring.text))
    content = Range(
        Position(docstring.start.line, docstring.start.column - 1),
        Position(end.line, end.column + 1),
    )
    return Edit(content, around + text + addition + around)


ADD_EXAMPLES: Final = "refactor.rewrite.jaxsight.addExamples"
PENDING = "examples of "
"""How the pending edits of an action begin that tries proposals first."""

PATIENCE = 1.0
"""Seconds to wait for proposals that are being tried, a choice: with more, the menu lags."""
_LONG_PATIENCE = 60.0
"""Seconds that an action waits for them after it was selected, a choice: the progress is shown."""
_TITLE, _KEEP = "Add example inputs", "Keep these inputs"
_LONGEST = 110  # characters of an entry of the menu, a choice: about its width in VS Code


async def add_examples(
    engine: Engine, document: Document, subjects: tuple[Subject, ...], range: Range
) -> list[Action]:
    """Return the actions that write inputs of the function at the range, unless it has a section.

    The inputs in use are first, if nobody wrote them and they can be written. Others are proposed.
    """
    if (innermost := document.module.function_at(range.start)) is None:
        return []
    chunk, function = innermost
    own = [s for s in subjects if s.chunk is chunk and s.name == function.qualname]
    if function.refused or any(s.examples.source == "docstring" for s in own):
        return []
    wanting = _Wanting(engine, document, chunk, function)
    used = [engine.choices.set_of(document, subject) for subject in own]
    kept = [action for each in used for action in wanting.keeping(each)]
    if range.touches(Range(innermost.range.start, innermost.body.start)):
        trying = await wanting.tried(PATIENCE)
        more = wanting.of(trying.result()) if trying.done() else wanting.pending()
        return [*kept, *await more]
    known = await engine.proposals.cached(document, chunk, function)  # in its body nothing is tried
    return [*kept, *await (wanting.of(known) if known is not None else wanting.pending())]


@dataclass(frozen=True, slots=True)
class _Wanting:
    """A function that example inputs are proposed for."""

    engine: Engine
    document: Document
    chunk: ModuleChunk
    function: Function

    @staticmethod
    async def find(engine: Engine, path: str, name: str) -> _Wanting:
        """Return the function of a file by its qualified name.

        Raises:
            LookupError: there is none.
        """
        document = await engine.documents.read(path)
        functions = document.module.functions if document is not None else ()
        found = next((pair for pair in functions if pair[1].qualname == name), None)
        if document is None or found is None:
            raise LookupError(f"there is no function {name} in {path}")
        return _Wanting(engine, document, *found)

    async def tried(self, patience: float | None) -> asyncio.Future[Tried | None]:
        """Try proposals, which goes on after `patience` seconds."""
        outcome = self.engine.proposals.outcome(self.document, self.chunk, self.function)
        trying = asyncio.ensure_future(outcome)
        self.engine.waiting.hold(trying)
        await asyncio.wait([trying], timeout=patience)
        return trying

    async def pending(self) -> list[Action]:
        """Return an action that tries proposals when it is selected.

        Its edits are those of the best guess, for editors that need them at once.
        """
        if (guess := await asyncio.to_thread(self._guess)) is None:
            return []
        if self._is_installed:
            return self._actions(guess, "not tried yet")
        name = self.function.qualname
        edits, pending = (self._section(guess.lines),), f"{PENDING}{name}"
        return [Action(f"{_TITLE} to {name}", ADD_EXAMPLES, edits, pending=pending)]

    async def of(self, outcome: Tried | None) -> list[Action]:
        """Return the actions that write proposals which were tried; `None` if nothing may run."""
        if outcome is not None:
            reason = "" if outcome.is_traced else outcome.reason or "no tracer"
            return self._actions(outcome.guess, reason)
        guess = await asyncio.to_thread(self._guess)
        held_back = self.engine.projects.of(self.document.path).held_back
        return self._actions(guess, held_back or "no tracer") if guess is not None else []

    def _guess(self) -> Proposal | None:
        """Return what the text says about the inputs; the first call imports what reads it."""
        from jaxsight.examples.proposals.inference import infer

        return infer(self.document.module, self.chunk, self.function)

    @property
    def _is_installed(self) -> bool:
        return not LIBRARIES.isdisjoint(PurePath(self.document.path).parts)

    def _section(self, lines: tuple[str, ...]) -> Edit:
        return section_edit(self.function, lines).shifted(self.chunk.first_line)

    def keeping(self, used: ExampleSet | None) -> list[Action]:
        """Return the action that writes the inputs of a call, if all of them have a text."""
        call = used.outside if used is not None and not used.assumed else None
        if call is None or call.dry_call is not None or not call.text:
            return []
        lines = tuple(call.text.split("\n"))
        return self._writing(f"{_KEEP}: {', '.join(line.strip() for line in lines)}", lines)

    def _actions(self, proposal: Proposal, reason: str) -> list[Action]:
        """Return the action that writes a proposal, unless it cannot be written."""
        why = f" (not traced: {clause(reason, 50)})" if reason else ""
        inputs = proposal.title or f"{self.function.qualname} takes none"
        return self._writing(f"{_TITLE}{why}: {inputs}", proposal.lines)

    def _writing(self, words: str, lines: tuple[str, ...]) -> list[Action]:
        """Return the action that writes the lines of a section, unless that is not possible."""
        title = clause(words, _LONGEST)
        if not self._is_installed:
            return [Action(title, ADD_EXAMPLES, (self._section(lines),))]
        file = str(Path(self.engine.projects.of(self.document.path).root, SETTINGS_FILE))
        key = f"{module_name(self.document.path)}:{self.function.qualname}"
        if (edits := settings_edits(file, key, "\n".join(lines))) is None:
            return []
        return [Action(f"{title} (in {SETTINGS_FILE})", ADD_EXAMPLES, edits, file=file)]


def settings_edits(file: str, key: str, inputs: str) -> tuple[Edit, ...] | None:
    """Return the edits that add inputs to a settings file; `None` if that is not possible."""
    try:
        text = reading.source(file) if reading.exists(file) else ""
    except reading.UnreadableError:
        return None
    if (changed := with_entries(text, {key: inputs})) is None:
        return None
    before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    first = common_prefix(before, after)
    kept = common_prefix(before[first:][::-1], after[::-1])
    new = "".join(after[first : len(after) - kept])
    end = Position(len(before) - kept, 0)
    if before and not before[-1].endswith("\n") and not kept:
        end = Position(len(before) - 1, len(before[-1]))
    return (Edit(Range(min(Position(first, 0), end), end), new),)


async def resolve(engine: Engine, path: str, pending: str) -> tuple[Edit, ...]:
    """Return the edits of an action that tries proposals after it was selected.

    Raises:
        LookupError: there is no such function, or its text cannot be read.
    """
    name = pending.removeprefix(PENDING)
    wanting = await _Wanting.find(engine, path, name)
    trying = await wanting.tried(_LONG_PATIENCE)
    if not (actions := await wanting.of(trying.result() if trying.done() else None)):
        raise LookupError(f"nothing can be proposed for {name}")
    return actions[0].edits


async def show_proposed(engine: Engine, path: str, name: str, *, hide: bool = False) -> None:
    """Trace a function with its best proposal for the rest of the session, or no longer.

    Raises:
        LookupError: no proposal could be traced; the message says why.
    """
    wanting = await _Wanting.find(engine, path, name)
    document = wanting.document
    if hide:
        document.hidden.add(name)
        show(document, name, None)
        return
    outcome = (await wanting.tried(None)).result()
    if outcome is None or not outcome.is_traced:
        reason = outcome.reason if outcome is not None else engine.projects.of(path).held_back
        raise LookupError(f"no proposed inputs of {name} can be traced: {reason}")
    document.hidden.discard(name)
    show(document, name, outcome)


async def keep_proposed(engine: Engine, path: str, name: str) -> Action:
    """Return the action that writes the proposal which a function is traced with.

    Raises:
        LookupError: there is none.
    """
    wanting = await _Wanting.find(engine, path, name)
    if not (actions := await wanting.of((await wanting.tried(None)).result())):
        raise LookupError(f"no proposed inputs of {name} can be written")
    return actions[0]
