"""What is known of the calls in the programs that reach a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from pathlib import PurePath

from jaxsight.examples.jax_use import is_program_name
from jaxsight.examples.sets import OutsideSet
from jaxsight.files.texts import Version
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.text.units import some
from jaxsight.wire.messages.inputs import DryCall, EntryPoint, InputCall
from jaxsight.wire.messages.replies import CallRecord, DryCalls
from jaxsight.workers.results import Died

# Calls in dry runs of which some arguments are not known.


@dataclass(frozen=True, slots=True)
class PartialCall:
    """A call of a function that has only some of its arguments: data were not loaded.

    An example set with this `dry_call` needs examples of the `unknown` parameters alone.
    """

    function: str
    dry_call: DryCall
    label: str
    known: tuple[tuple[str, str], ...]
    """The types of the known arguments, by parameter, for people."""
    unknown: tuple[str, ...]
    fed: tuple[str, ...] = ()
    """Types of the arrays that the programs pass to models: unknown data may be like them."""
    sizes: tuple[tuple[str, str, int], ...] = ()
    """The names of unknown sizes of the known arguments, the code that they are from, and their
    numbers."""


# Which programs run in one request, and what it says of a function that none of them calls.

_BATCH = 4
"""Programs of one file that run in one request, a choice: all are lost when one ends the tracer."""
_NAMED = 2
"""Files that a reason names, a choice: it is one clause."""

Batch = tuple[EntryPoint, ...]
"""Programs that are run by one request."""


def batches(programs: tuple[EntryPoint, ...]) -> Iterator[Batch]:
    """Yield the programs that run in one request: some of one file, or one of several tests."""
    for _, group in groupby(programs, key=lambda entry: entry.file):
        batch: Batch = ()
        for entry in group:
            of_several = " " in entry.function
            if batch and (of_several or len(batch) == _BATCH):
                yield batch
                batch = ()
            batch += (entry,)
            if of_several:
                yield batch
                batch = ()
        if batch:
            yield batch


def why_uncalled(
    path: str,
    function: str,
    entries: Sequence[EntryPoint],
    ended: Collection[EntryPoint],
    ran: Collection[str],
) -> str:
    """Return why a function has no calls once all programs have run.

    Args:
        path: its file.
        function: its qualified name.
        entries: the programs.
        ended: those that were run.
        ran: the functions of the file that ran in them.
    """
    if function in ran:
        return "it was run, and no array was seen in it"
    own = [entry for entry in entries if entry.file == path]
    if is_program_name(function) and not any(function in e.function.split() for e in own):
        return "it is not run here: its arguments are not in this file"
    # Of functions with example inputs, only what they call is run.
    entries = [entry for entry in entries if not entry.given]
    if not entries:
        return "no program, test or notebook uses this file"
    files = dict.fromkeys(
        "this file" if entry.file == path else f"`{PurePath(entry.file).name}`" for entry in entries
    )
    cut = "" if {*entries} <= {*ended} else ", which did not end in time"
    return f"not called in a run of {some([*files], _NAMED, ' and ')}{cut}"


@dataclass(slots=True)
class CallFacts:
    """What is known of the calls in a file's programs, for texts that have a certain meaning."""

    key: tuple[str, tuple[EntryPoint, ...]]
    module: Module
    """The file's own text."""
    meaning: str
    """That of the file's own text."""
    replies: dict[Batch, DryCalls | None] = field(default_factory=dict)
    """By programs that were run; `None` if they could not be."""
    files: dict[str, Version] = field(default_factory=dict)
    """The versions of the other files that the replies are made of."""
    settled: bool = False
    """Whether no further program is going to be run."""
    failed: set[tuple[str, str]] = field(default_factory=set)
    """Functions, and labels of calls with which they cannot be traced."""
    known: set[str] = field(default_factory=set)
    """Functions whose inputs are those of the replies, while programs are still to be run."""
    given: tuple[InputCall, ...] = ()
    """The file's functions with example inputs, which call others."""
    kept: set[str] = field(default_factory=set)
    """Functions whose inputs are those of an earlier text: what called them fails now."""
    killers: list[Died] = field(default_factory=list)
    """The deaths of tracers in which programs were run."""
    ids: dict[tuple[str, str], str] = field(init=False)
    """Those of functions, by the ids of their chunks and their names."""

    def __post_init__(self) -> None:
        self.ids = {(chunk.id, f.qualname): id for (chunk, f), id in functions_of(self.module)}

    @property
    def calls(self) -> Iterator[tuple[CallRecord, DryCall]]:
        """The calls of all replies, those of the first programs first, by the ids of functions."""
        for batch, reply in self.replies.items():
            asked = {r.executed: r.asked for r in reply.reused} if reply is not None else {}
            for call in reply.calls if reply is not None else ():
                if 0 <= call.entry < len(batch):
                    chunk = asked.get(call.definition, call.definition)
                    id = self.ids.get((chunk, call.function), call.function)
                    dry_call = DryCall(batch[call.entry], call.number)
                    if id == call.function or call.text:  # others are found by name
                        yield replace(call, function=id), dry_call

    @property
    def fails(self) -> bool:
        """Whether a function with example inputs fails, which may call others."""
        return any(reply is not None and reply.fails for reply in self.replies.values())

    @property
    def fed(self) -> tuple[str, ...]:
        """The types of the arrays that models are called with."""
        replies = (reply for reply in self.replies.values() if reply is not None)
        return tuple(dict.fromkeys(text for reply in replies for text in reply.fed))


def functions_of(module: Module) -> Iterator[tuple[tuple[ModuleChunk, Function], str]]:
    """Yield the functions of a module with their ids."""
    return zip(module.functions, module.ids, strict=True)


# Recorded calls that are older than the program: it calls the function with other types now.

_ARRAY = re.compile(r"\b[a-z]\w*\[[\d, ]*\]")
"""The type of an array whose sizes are numbers."""
_CUT = "…"
"""In a text that does not show all arrays."""


def are_old(recorded: Iterable[OutsideSet], observed: Iterable[CallRecord]) -> bool:
    """Return whether the types of no recorded call are those of an observed one.

    They are not if nothing is observed, or if the types cannot be compared: of some arrays only
    values are known, or an expression.
    """
    calls = [dict(c.inputs) for c in observed if not (c.unknown or c.sized)]
    pairs = [_differ(_lines(old), now) for old, now in product(recorded, calls)]
    return bool(pairs) and all(pairs)


def _lines(recorded: OutsideSet) -> dict[str, str]:
    """Return the types of recorded arguments by parameter."""
    lines = (line.partition(": ") for line in recorded.text.split("\n"))
    return {name: text for name, colon, text in lines if colon}


def _differ(old: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether an argument has arrays in both calls, and others."""
    both = ((_arrays(old[name]), _arrays(now[name])) for name in old.keys() & now.keys())
    return any(before and after and before != after for before, after in both)


def _arrays(text: str) -> list[str]:
    """Return the types of the arrays in a text; nothing if it does not show all of them."""
    return [] if _CUT in text else [each.replace(" ", "") for each in _ARRAY.findall(text)]


# Where functions are: in others, which use them, and around loops.

_LOOP = re.compile(r"^[ \t]*(?:async )?(?:for|while)\b", re.MULTILINE)


def has_loop(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a function has a statement that is a loop."""
    lines = chunk.text.split("\n")[function.body_start.line : function.range.end.line + 1]
    return _LOOP.search("\n".join(lines)) is not None


def used_outside(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a nested function is not only returned by that around it, but used there.

    The trace of the function around it has its shapes then.
    """
    if "<locals>" not in function.qualname:
        return False
    lines = chunk.text.split("\n")
    del lines[function.range.start.line : function.range.end.line + 1]
    name = re.escape(function.qualname.rpartition(".")[2])
    # A line that returns it may call it.
    used, called = re.compile(rf"\b{name}\b"), re.compile(rf"\b{name}\(")
    return any((called if "return" in line else used).search(line) for line in lines)


def parents(qualname: str) -> tuple[str, ...]:
    """Return the functions that a nested function is in."""
    parts = qualname.split(".<locals>.")[:-1]
    return tuple(".<locals>.".join(parts[: n + 1]) for n in range(len(parts)))
