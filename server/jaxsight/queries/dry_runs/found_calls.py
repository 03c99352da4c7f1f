"""What is known of the calls in the programs that reach a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jaxsight.files.texts import Version
from jaxsight.queries.dry_runs.batches import Batch
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.wire.messages.inputs import DryCall, EntryPoint, GivenCall
from jaxsight.wire.messages.replies import CallSeen, DryCalls
from jaxsight.workers.results import Died


@dataclass(slots=True)
class FoundCalls:
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
    given: tuple[GivenCall, ...] = ()
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
    def calls(self) -> Iterator[tuple[CallSeen, DryCall]]:
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
